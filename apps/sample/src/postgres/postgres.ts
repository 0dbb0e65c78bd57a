import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { EmbeddedServer } from './embedded-server.js';

export const SERVER = Symbol('server');

/** The database of this application: on the server that DATABASE_URL names, or on one that came with the application. */
@Injectable()
export class Postgres implements OnApplicationShutdown {
  constructor(@Inject(SERVER) private readonly server: EmbeddedServer | { url: string }) {}

  get url(): string {
    return this.server.url;
  }

  /** Whether it came with the application. */
  get isOwn(): boolean {
    return 'folder' in this.server;
  }

  /** For people: where it is, and no password. */
  describe(): string {
    const url = new URL(this.url);
    url.password = '';
    return 'folder' in this.server ? `${url}  (its data lies in ${this.server.folder})` : url.href;
  }

  async onApplicationShutdown(): Promise<void> {
    if ('stop' in this.server) await this.server.stop();
  }
}
