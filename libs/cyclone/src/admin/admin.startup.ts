import { Logger, type OnModuleInit } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import type { ResolvedAdminOptions } from './admin-options.js';
import { API_PATH } from './open-api.js';

/** Bytes of the longest node name, of which each may be a character, and its index in a fan-out. */
const LONGEST_NODE = 520;

/** Says at the start what an administrator should know. */
export class AdminStartup implements OnModuleInit {
  private readonly logger = new Logger('Cyclone admin');

  constructor(
    private readonly options: ResolvedAdminOptions,
    private readonly host: HttpAdapterHost,
  ) {}

  onModuleInit(): void {
    const { guards, path } = this.options;
    if (guards.length === 0) {
      this.logger.warn(
        `/${path}/${API_PATH} is open to everybody who reaches this port, because insecure is true. Pass guards before anybody else does.`,
      );
    }
    const longest = this.longestParameter();
    if (longest !== undefined && longest < LONGEST_NODE) {
      this.logger.warn(
        `This Fastify answers 404 for nodes with names longer than ${longest} characters. ` +
          `Make it with new FastifyAdapter({ routerOptions: { maxParamLength: ${LONGEST_NODE} } }).`,
      );
    }
  }

  /** How long a parameter of a path may be; undefined for a router that sets no limit. */
  private longestParameter(): number | undefined {
    const adapter = this.host.httpAdapter as HttpAdapterHost['httpAdapter'] | undefined; // none outside of HTTP applications
    if (adapter?.getType() !== 'fastify') return undefined;
    const { initialConfig = {} } = adapter.getInstance<{
      initialConfig?: { maxParamLength?: number; routerOptions?: { maxParamLength?: number } };
    }>();
    return initialConfig.routerOptions?.maxParamLength ?? initialConfig.maxParamLength;
  }
}
