import { AsyncResource } from 'node:async_hooks';
import type { Connections } from '../store/connections.js';
import { isAnswer } from '../store/database-fault.js';
import type { Session } from '../store/session.js';
import { ConnectionLostError } from './client-errors.js';
import { DatabaseError } from './database-error.js';
import { countForOneCall, type Submission } from './submission.js';
import { outcomeOf, repeatTransient } from './transient.js';

interface Member<S, A> {
  readonly submission: S;
  resolve(answer: A): void;
  reject(error: unknown): void;
  /** Whether it was sent before and its answer was lost. */
  repeated: boolean;
}

export interface GathererOptions<S, A> {
  /** Makes the runs in one transaction and gives an answer for each. */
  send(session: Session, submissions: readonly S[]): Promise<readonly A[]>;
  /** Whether a submission may be sent again when its answer was lost. */
  readonly repeatable: boolean;
  /** Whether a call makes runs: what made none has done nothing when its answer is lost. @default true */
  readonly makesRuns?: boolean;
  /** Most submissions in one call. @default as many as is sensible */
  readonly most?: number;
}

/**
 * Gathers submissions while a call is in flight and sends them together in the next one. One call at a time, on one connection of
 * the pool for as long as there is something to send. What the server refuses fails alone.
 */
export class Gatherer<S extends Submission, A> {
  private readonly waiting: Member<S, A>[] = [];
  private running: Promise<void> | undefined;
  /** Calls are made in the async context of the client, not in that of whoever happens to submit first (C11). */
  private readonly scope = new AsyncResource('CycloneSubmits');

  constructor(
    private readonly connections: Connections,
    private readonly options: GathererOptions<S, A>,
  ) {}

  /** @throws ConnectionLostError, DatabaseError */
  add(submission: S): Promise<A> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ submission, resolve, reject, repeated: false });
      this.running ??= this.scope.runInAsyncScope(() => this.run());
    });
  }

  private async run(): Promise<void> {
    while (this.waiting.length > 0) await this.sendAll();
    this.running = undefined;
  }

  /** Call after call on one connection; what arrives while one is in flight, or the connection is opened, goes with the next. */
  private async sendAll(): Promise<void> {
    let batch: readonly Member<S, A>[] = [];
    let connected = false;
    try {
      await this.connections.use(async (session) => {
        connected = true;
        // What was taken and not delivered comes first, should this be done again on another connection.
        while (batch.length > 0 || this.waiting.length > 0) {
          if (batch.length === 0) batch = this.take();
          await this.deliver(session, batch);
          batch = [];
        }
      }, 'submit');
    } catch (error) {
      if (connected && isAnswer(error)) for (const member of batch) await this.sendAlone(member);
      else if (connected) this.settleLost(batch, error, true);
      else this.settleLost(this.waiting.splice(0), error, false);
    }
  }

  private async sendAlone(member: Member<S, A>): Promise<void> {
    let connected = false;
    try {
      await repeatTransient(() =>
        this.connections.use((session) => {
          connected = true;
          return this.deliver(session, [member]);
        }, 'submit'),
      );
    } catch (error) {
      if (connected && isAnswer(error)) member.reject(new DatabaseError(nameOf(member), error));
      else this.settleLost([member], error, connected);
    }
  }

  private take(): Member<S, A>[] {
    const count = countForOneCall(this.waiting, ({ submission }) => submission, this.options.most);
    return this.waiting.splice(0, count);
  }

  private async deliver(session: Session, batch: readonly Member<S, A>[]): Promise<void> {
    const answers = await this.options.send(
      session,
      batch.map(({ submission }) => submission),
    );
    batch.forEach((member, index) => member.resolve(answers[index] as A));
  }

  /** Sends again what may be sent twice or was not sent at all, once, and rejects the rest: to send it again could double it. */
  private settleLost(members: readonly Member<S, A>[], error: unknown, connected: boolean): void {
    const outcome = this.options.makesRuns === false ? 'nothing' : outcomeOf(error, connected);
    for (const member of members) {
      if (connected && !member.repeated && (this.options.repeatable || outcome === 'nothing')) {
        member.repeated = true;
        this.waiting.push(member);
      } else {
        member.reject(new ConnectionLostError(nameOf(member), outcome, { cause: error }));
      }
    }
  }
}

function nameOf({ submission }: Member<Submission, never>): string {
  return `submit of ${submission.run.workflow}`;
}
