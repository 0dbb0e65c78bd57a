import type { RawClient } from '../../store/raw-client.js';

export interface ClientGuard {
  refusal(sql: string): Error | undefined;
  track<T>(statement: Promise<T>): Promise<T>;
  released(): Error;
}

/** The `pg` client of a completion transaction as a handler sees it: it sends statements but can neither end nor release it. */
export function guardClient(client: RawClient, guard: ClientGuard): RawClient {
  return new Proxy(client, {
    get(target, key) {
      if (key === 'query') return (...args: unknown[]) => query(target, guard, args);
      if (key === 'release' || key === 'end') {
        return () => {
          throw guard.released();
        };
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function query(client: RawClient, guard: ClientGuard, args: unknown[]): unknown {
  const [first] = args;
  const sql = typeof first === 'string' ? first : (first as { text?: unknown } | undefined)?.text;
  const refusal = guard.refusal(typeof sql === 'string' ? sql : '');
  if (refusal) return Promise.reject(refusal);
  const result = (client.query as (...args: unknown[]) => unknown).apply(client, args);
  return result instanceof Promise ? guard.track(result) : result;
}
