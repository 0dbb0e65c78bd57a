import type { QueryRunner } from 'typeorm';

/** The part of a `pg` client that the engine uses. */
export interface RawClient {
  query(config: RawQuery): Promise<RawResult | RawResult[]>;
  on(event: 'error' | 'end' | 'notification', listener: (argument: never) => void): unknown;
  removeListener(event: 'error' | 'end' | 'notification', listener: (argument: never) => void): unknown;
  end(): Promise<void>;
  /** Of the session, as the server or a pooler before it says at the connect. */
  readonly processID?: number | null;
}

export interface RawQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
  readonly rowMode?: 'array';
  readonly types?: { getTypeParser(): (text: string) => unknown };
}

export interface RawResult {
  readonly command: string | null;
  readonly rowCount: number | null;
  readonly rows: (string | null)[][];
}

/**
 * Values come as the texts of the wire, so that type parsers which the application or TypeORM set globally cannot change
 * what the engine reads (C17).
 */
export const RAW_TYPES = { getTypeParser: () => (text: string) => text };

/** The client behind a query runner; connects it when it is not yet connected. */
export async function rawClientOf(runner: QueryRunner): Promise<RawClient> {
  return (await runner.connect()) as RawClient;
}

/**
 * Cuts a connection whose state is in doubt. The pool throws such a client away when it is released, so nobody inherits an
 * open transaction; a query that still waits for its answer is rejected at once.
 */
export function destroyClient(client: RawClient): void {
  client.end().catch(() => undefined); // it cannot be ended twice or while it breaks, and that is just as well
}
