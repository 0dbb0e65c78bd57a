import { createHash } from 'node:crypto';
import { faultOf } from './database-fault.js';
import { quoteIdentifier } from './identifier.js';
import { watchLoss, withLastWords } from './session-loss.js';
import { RAW_TYPES, type RawClient, type RawResult } from './raw-client.js';

/** Where a call to the database is, for tests that kill a worker there. */
export type CallPhase = 'before' | 'sent' | 'after';
/** Told of each call of an engine function; awaited before the call and after its answer. */
export type CallObserver = (call: string, phase: CallPhase, client: RawClient) => void | Promise<void>;

export interface SessionOptions {
  /** Named prepared statements; off behind a transaction-mode pooler. */
  readonly preparedStatements: boolean;
  readonly observer?: CallObserver;
}

/** A statement of the engine: `call` names the operation, `text` takes its values as $1 to $n. */
export interface Statement {
  readonly call: string;
  readonly text: string;
  /** The name of the prepared statement: the hash of its text, which contains the schema (C15). */
  readonly name: string;
}

export function statement(call: string, text: string): Statement {
  return { call, text, name: `cyclone_${createHash('sha256').update(text).digest('hex').slice(0, 16)}` };
}

/** The statement that calls a function of the engine. `call` is the function's name where the operation has no other. */
export function functionCall(
  schema: string,
  name: string,
  parameters: number,
  columns: string,
  call: string = name,
): Statement {
  const list = Array.from({ length: parameters }, (_, i) => `$${i + 1}`).join(', ');
  return statement(call, `select ${columns} from ${quoteIdentifier(schema)}.${name}(${list})`);
}

/** A connection as the engine talks over it: texts in, texts out, prepared by name. */
export class Session {
  private prepared: boolean;

  constructor(
    readonly client: RawClient,
    private readonly options: SessionOptions,
    /** Whether a call may be repeated on this connection: not inside a transaction of somebody else. */
    private readonly repeatable = true,
  ) {
    this.prepared = options.preparedStatements;
    watchLoss(client);
  }

  /** Runs a statement and gives its rows as texts. Rejects with the driver's error, or with the server's last words. */
  async rows(call: Statement, values: readonly unknown[]): Promise<(string | null)[][]> {
    await this.options.observer?.(call.call, 'before', this.client);
    try {
      return await this.send(call, values);
    } catch (error) {
      if (!this.prepared || faultOf(error) !== 'plan') throw error;
      this.prepared = false;
      if (!this.repeatable) throw error;
      return this.send(call, values);
    }
  }

  /** Sends statements without parameters in one message and gives the result of each; the observer sees one call. */
  async script(call: string, text: string): Promise<RawResult[]> {
    await this.options.observer?.(call, 'before', this.client);
    const results = await this.answer(call, this.client.query({ text, rowMode: 'array', types: RAW_TYPES }));
    return Array.isArray(results) ? results : [results];
  }

  private async send(call: Statement, values: readonly unknown[]): Promise<(string | null)[][]> {
    const query = {
      text: call.text,
      values,
      rowMode: 'array',
      types: RAW_TYPES,
      ...(this.prepared ? { name: call.name } : {}),
    } as const;
    const result = (await this.answer(call.call, this.client.query(query))) as RawResult;
    return result.rows;
  }

  private async answer<T>(call: string, sent: Promise<T>): Promise<T> {
    const { observer } = this.options;
    if (observer) {
      sent.catch(() => undefined); // it is awaited below; the observer may let it fail before that
      await observer(call, 'sent', this.client);
    }
    let result: T;
    try {
      result = await sent;
    } catch (error) {
      throw withLastWords(this.client, error);
    }
    await observer?.(call, 'after', this.client);
    return result;
  }
}
