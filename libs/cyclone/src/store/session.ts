import { createHash } from 'node:crypto';
import { faultOf } from './database-fault.js';
import { quoteIdentifier } from './identifier.js';
import { watchLoss, withLastWords } from './session-loss.js';
import { destroyClient, RAW_TYPES, type RawClient, type RawResult } from './raw-client.js';
import { BEGIN_ON_OWN_TERMS, isOfSettings, isReadOnly } from './session-terms.js';

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

/** The same for a statement on the tables of a schema, which refuses a session that would change what is stored or read. */
export function checkedStatement(schema: string, call: string, text: string): Statement {
  // A filter without a column is judged before the first row is asked for.
  return statement(
    call,
    `select * from (${text}) answer where (select ${quoteIdentifier(schema)}.cyclone_check_session())`,
  );
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
  const quoted = quoteIdentifier(schema);
  return statement(
    call,
    `select ${columns} from ${quoted}.${name}(${list}) where (select ${quoted}.cyclone_check_session())`,
  );
}

/** A connection as the engine talks over it: texts in, texts out, prepared by name. */
export class Session {
  private prepared: boolean;
  private used = false;
  private readOnly = false;

  constructor(
    readonly client: RawClient,
    private readonly options: SessionOptions,
    /** Whether a call may be repeated on this connection: not inside a transaction of somebody else. */
    private readonly repeatable = true,
  ) {
    this.prepared = options.preparedStatements;
    watchLoss(client);
  }

  /** Whether two statements are sure to meet the same session of the server: not behind a pooler in transaction mode. */
  get isOwn(): boolean {
    return this.options.preparedStatements;
  }

  /** Whether it has done something that is committed. */
  get isUsed(): boolean {
    return this.used;
  }

  /** Whether it has turned out that it cannot write: then its connection is of no use to anybody. */
  get isReadOnly(): boolean {
    return this.readOnly;
  }

  /**
   * Runs a statement and gives its rows as texts. What the settings of the session may have caused is done again in a transaction on the
   * engine's own terms. Rejects with the driver's error, or with the server's last words.
   */
  async rows(call: Statement, values: readonly unknown[]): Promise<(string | null)[][]> {
    await this.options.observer?.(call.call, 'before', this.client);
    try {
      return await this.send(call, values);
    } catch (error) {
      if (this.prepared && faultOf(error) === 'plan') this.prepared = false;
      else if (!isOfSettings(error)) throw error;
      else if (this.repeatable) return this.transaction('OnOwnTerms', (session) => session.send(call, values));
      if (!this.repeatable) throw error;
      return this.send(call, values);
    }
  }

  /** Runs `work` in a transaction on the engine's own terms, whatever the session's are. `name` is for the observer. */
  async transaction<T>(name: string, work: (session: Session) => Promise<T>, locals = ''): Promise<T> {
    try {
      await this.script(`begin${name}`, `${BEGIN_ON_OWN_TERMS}${locals}`);
    } catch (error) {
      await this.undo(name, error);
      throw error;
    }
    let result: T;
    try {
      result = await work(new Session(this.client, this.options, false));
    } catch (error) {
      await this.undo(name, error);
      throw error;
    }
    await this.script(`commit${name}`, 'commit');
    this.used = true;
    return result;
  }

  /** Rolls back. The caller is told what went wrong first; a connection that is not as it was goes to nobody else. */
  private async undo(name: string, error: unknown): Promise<void> {
    this.readOnly ||= isReadOnly(error);
    if (faultOf(error) === 'session') return;
    await this.script(`rollback${name}`, 'rollback').catch(() => destroyClient(this.client));
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
    this.used = true;
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
      this.readOnly ||= isReadOnly(error);
      throw withLastWords(this.client, error);
    }
    await observer?.(call, 'after', this.client);
    return result;
  }
}
