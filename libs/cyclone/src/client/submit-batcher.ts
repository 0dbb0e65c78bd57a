import type { Engine } from '../store/engine.js';
import type { KeyedOutcome } from '../store/submit-store.js';
import { ClientClosedError } from './client-errors.js';
import { Gatherer } from './gatherer.js';
import { announce, countForOneCall, type KeyedSubmission, type Submission } from './submission.js';
import { onConnection } from './transient.js';

/** How long a batch waits for a key that another transaction holds. Short: the batch holds its other keys meanwhile (C7). */
const BATCH_WAIT_MS = 100;
/** How long one key alone waits at a time, holding nothing. */
const ALONE_WAIT_MS = 1_000;

/** Submits outside a caller's transaction: concurrent ones travel together in one call, keyed ones apart from the others (DESIGN §8). */
export class SubmitBatcher {
  private readonly unkeyed: Gatherer<Submission, string>;
  private readonly ids: Gatherer<Submission, string>;
  private readonly keyed: Gatherer<KeyedSubmission, KeyedOutcome>;
  /** Where keys go that another transaction holds: one by one, so that they hold up nobody else. */
  private readonly contended: Gatherer<KeyedSubmission, KeyedOutcome>;

  private closed = false;

  constructor(private readonly engine: Engine) {
    const { connections, submits } = engine;
    this.unkeyed = new Gatherer(connections, {
      send: (session, batch) => submits.submit(session, runsOf(batch)),
      repeatable: false,
    });
    this.ids = new Gatherer(connections, {
      send: (session, batch) => submits.reserveIds(session, batch.length),
      repeatable: true,
      makesRuns: false,
    });
    this.keyed = new Gatherer(connections, {
      send: (session, batch) => submits.submitOnce(session, runsOf(batch), BATCH_WAIT_MS),
      repeatable: true,
    });
    this.contended = new Gatherer(connections, {
      send: (session, batch) => submits.submitOnce(session, runsOf(batch), ALONE_WAIT_MS),
      repeatable: true,
      most: 1,
    });
  }

  /** From now on nobody waits for a key that another transaction holds. */
  close(): void {
    this.closed = true;
  }

  /** An id for a run that needs it before it is made. */
  reserveId(submission: Submission): Promise<string> {
    return this.ids.add(submission);
  }

  /**
   * Makes a run and gives its id.
   * @throws ConnectionLostError when it is unknown whether the run exists: to send it again could double it
   */
  async submit(submission: Submission): Promise<string> {
    const runId = await this.unkeyed.add(submission);
    announce(this.engine, [submission], [runId]);
    return runId;
  }

  /**
   * Makes at most one run for the key; waits for as long as another transaction holds it.
   * @throws ClientClosedError when the application shuts down meanwhile
   */
  async submitOnce(submission: KeyedSubmission): Promise<KeyedOutcome> {
    let answer = await this.keyed.add(submission);
    while (answer.outcome === 'busy' || answer.outcome === 'conflict') {
      if (this.closed) throw new ClientClosedError();
      answer = await this.contended.add(submission);
    }
    if (answer.outcome === 'created') announce(this.engine, [submission], [answer.runId]);
    return answer;
  }

  /**
   * Makes all the runs in one transaction, or none (R8); gives their ids in order.
   * @throws ConnectionLostError when it is unknown whether the runs exist
   */
  async submitTogether(submissions: readonly Submission[]): Promise<string[]> {
    const batches = inBatches(submissions).map(runsOf);
    const runIds = await onConnection(this.engine.connections, `submit of ${submissions.length} runs`, (session) =>
      this.engine.submits.submitBatches(session, batches),
    );
    announce(this.engine, submissions, runIds);
    return runIds;
  }
}

/** The submissions in portions for one call each. */
export function inBatches(submissions: readonly Submission[]): Submission[][] {
  const batches: Submission[][] = [];
  for (let rest = submissions; rest.length > 0; rest = rest.slice(batches.at(-1)?.length)) {
    batches.push(
      rest.slice(
        0,
        countForOneCall(rest, (submission) => submission),
      ),
    );
  }
  return batches;
}

function runsOf<R>(submissions: readonly { readonly run: R }[]): R[] {
  return submissions.map(({ run }) => run);
}
