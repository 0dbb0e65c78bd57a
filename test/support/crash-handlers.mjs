/** @typedef {import('#cyclone/graph/step-context.js').StepContext} StepContext */
/** @typedef {import('typeorm').EntityManager} EntityManager */

const ENTRY = 'insert into ledger (run_id, node, attempt) values ($1, $2, $3)';

/**
 * The handlers of a worker process. Each effect goes through the completion transaction into a ledger without a unique key, so an
 * effect that happens twice shows.
 *
 * @param {(ctx: StepContext) => Promise<void>} hold stands still where the test said it wants to decide what comes next
 * @returns {Record<string, (input: { ms?: number } | null, ctx: StepContext) => unknown>}
 */
export function createHandlers(hold) {
  /** @param {StepContext} ctx */
  const enter = async (ctx) => {
    const tx = await ctx.completionTx();
    await tx.query(ENTRY, [ctx.runId, ctx.node, ctx.attempt]);
    return tx;
  };

  return {
    /** Has no effect and no completion transaction: it completes with a flush. */
    plain: async (_input, ctx) => {
      await hold(ctx);
      return ctx.node;
    },
    ledger: async (_input, ctx) => {
      await hold(ctx);
      await enter(ctx);
      return ctx.node;
    },
    /** Stands still inside its open completion transaction, the entry written. */
    insideLedger: async (_input, ctx) => {
      await enter(ctx);
      await hold(ctx);
      return ctx.node;
    },
    /** Fails after its first entry, which must not stay. */
    failOnce: async (_input, ctx) => {
      await hold(ctx);
      await enter(ctx);
      if (ctx.attempt === 1) throw new Error('fails once');
      return ctx.node;
    },
    snoozeOnce: async (_input, ctx) => {
      await hold(ctx);
      const tx = await enter(ctx);
      const before = await tx.query(
        `select 1 from cyclone_attempts where run_id = $1 and node = $2 and outcome = 'snoozed'`,
        [ctx.runId, ctx.node],
      );
      if (before.length === 0) ctx.snooze(1);
      return ctx.node;
    },
    /** What a careful application writes: an entry with a key. A rival's uncommitted entry makes it wait (C3). */
    keyed: async (_input, ctx) => {
      const tx = await ctx.completionTx();
      await tx.query('insert into keyed_ledger (run_id, node) values ($1, $2) on conflict do nothing', [
        ctx.runId,
        ctx.node,
      ]);
      await hold(ctx);
      return ctx.node;
    },
    /** Blocks the event loop. */
    block: async (input, ctx) => {
      await enter(ctx);
      const until = performance.now() + (input?.ms ?? 0);
      while (performance.now() < until);
      return ctx.node;
    },
  };
}
