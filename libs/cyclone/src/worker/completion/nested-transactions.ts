import { AsyncLocalStorage } from 'node:async_hooks';
import type { EntityManager } from 'typeorm';

/** A nested transaction that is open in the present async context. */
interface Level {
  readonly manager: EntityManager;
}

const innermost = new AsyncLocalStorage<Level>();

/**
 * Makes nested transactions of one manager that are started side by side take turns: TypeORM names savepoints by depth, so
 * overlapping ones would release and roll back each other's. One inside another goes on at once.
 */
export function serializeNested(manager: EntityManager): void {
  const turns = new WeakMap<Level | EntityManager, Promise<unknown>>();
  const transaction = manager.transaction as (...args: unknown[]) => Promise<unknown>;
  Object.defineProperty(manager, 'transaction', {
    configurable: true,
    value: (...args: unknown[]): Promise<unknown> => {
      const parent = innermost.getStore();
      const within = parent?.manager === manager ? parent : manager;
      const turn = (turns.get(within) ?? Promise.resolve()).then(() =>
        innermost.run({ manager }, () => transaction.apply(manager, args)),
      );
      turns.set(
        within,
        turn.catch(() => undefined), // the caller hears of it; the next one's turn comes all the same
      );
      return turn;
    },
  });
}
