import type { QueryRunner } from 'typeorm';
import type { SubmitOptions } from '../graph/client-types.js';
import type { Engine } from '../store/engine.js';
import type { KeyedOutcome } from '../store/submit-store.js';
import { afterCommit, callerTransaction, inCallerTransaction } from './caller-transaction.js';
import type { ClientLogger } from './definitions.js';
import { inBatches } from './submit-batcher.js';
import { emitSubmitted, wakeFor, type KeyedSubmission, type Submission } from './submission.js';

/**
 * How long a key is waited for at a time: less than deadlock_timeout, so that two transactions which wait for each other's keys are
 * both refused and none of them is aborted (C7).
 */
const LONGEST_SLICE_MS = 500;
/** How long in all, at most. */
const LONGEST_PATIENCE_MS = 4_000;

/** Submits that take part in a transaction of the caller (R6). They only insert. */
export class CallerSubmits {
  constructor(
    private readonly engine: Engine,
    private readonly logger: ClientLogger,
  ) {}

  /** @throws InvalidOptionError when `tx` is given and is no transaction that is active */
  runnerOf(tx: SubmitOptions['tx']): QueryRunner | undefined {
    return tx === undefined ? undefined : callerTransaction(tx, this.engine.connections);
  }

  /** Ids for runs that need them before they are made. */
  reserveIds(runner: QueryRunner, count: number): Promise<string[]> {
    const { connections, submits } = this.engine;
    return inCallerTransaction(runner, connections, (session) => submits.reserveIds(session, count));
  }

  async submit(runner: QueryRunner, submissions: readonly Submission[]): Promise<string[]> {
    const { connections, submits } = this.engine;
    const runIds = await inCallerTransaction(runner, connections, async (session) => {
      const ids: string[] = [];
      for (const batch of inBatches(submissions)) {
        ids.push(
          ...(await submits.submit(
            session,
            batch.map(({ run }) => run),
          )),
        );
      }
      return ids;
    });
    this.announceLater(runner, submissions, runIds);
    return runIds;
  }

  /** The outcome is `busy` when another transaction holds the key and does not end, `conflict` when its run cannot be seen. */
  async submitOnce(runner: QueryRunner, submission: KeyedSubmission): Promise<KeyedOutcome> {
    const { connections, submits } = this.engine;
    const answer = await inCallerTransaction(runner, connections, async (session) => {
      // Chance decides who of two that wait for each other gives up first, and so lets the other one go on.
      const start = performance.now();
      const patienceMs = LONGEST_PATIENCE_MS * (0.25 + 0.75 * Math.random());
      while (true) {
        const waitMs = Math.round(LONGEST_SLICE_MS * (0.5 + 0.5 * Math.random()));
        const [outcome] = await submits.submitOnce(session, [submission.run], waitMs);
        if (outcome && (outcome.outcome !== 'busy' || performance.now() - start > patienceMs)) return outcome;
      }
    });
    if (answer.outcome === 'created') this.announceLater(runner, [submission], [answer.runId]);
    return answer;
  }

  private announceLater(runner: QueryRunner, submissions: readonly Submission[], runIds: readonly string[]): void {
    const answeredAt = performance.now();
    afterCommit(runner, () => {
      try {
        wakeFor(this.engine, submissions, answeredAt);
      } catch (error) {
        this.report(error);
      }
      if (this.engine.events.active) this.emitThoseThatExist(submissions, runIds).catch((error) => this.report(error));
    });
  }

  /** A savepoint may have undone some, and a COMMIT of an aborted transaction all, without any error. */
  private async emitThoseThatExist(submissions: readonly Submission[], runIds: readonly string[]): Promise<void> {
    const states = await this.engine.connections.use(
      (session) => this.engine.runs.runStates(session, runIds),
      'look at runs that were submitted',
    );
    const made = submissions.flatMap((submission, index) => {
      const runId = runIds[index] as string;
      return states.has(runId) ? [{ submission, runId }] : [];
    });
    emitSubmitted(
      this.engine,
      made.map(({ submission }) => submission),
      made.map(({ runId }) => runId),
    );
  }

  private report(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.logger.warn(`Runs were submitted, but not everybody could be told at once: ${reason}`);
  }
}
