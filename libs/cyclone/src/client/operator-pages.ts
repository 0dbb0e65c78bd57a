import { types } from 'node:util';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { RUN_STATES, STEP_STATES, type RunState, type StepState } from '../model/states.js';
import type { ExhaustedPosition, ExhaustedStep } from '../store/dead-letter-store.js';
import type { Engine } from '../store/engine.js';
import type { CappedCount, RunFilter } from '../store/inspection-store.js';
import type { AuditRecord } from '../store/operations-store.js';
import type { RunRecord, StepRecord } from '../store/run-store.js';
import type { Session } from '../store/session.js';
import { Cursors } from './operator-cursor.js';
import { checkDeadLetters, checkOneOf, checkText, checkWhole, type DeadLetterFilter } from './operator-options.js';
import { checkRunId } from './run-id.js';
import { onConnection } from './transient.js';

/** Runs that one page looks at where no index helps; it may be short, and the next one goes on behind them. */
const SCAN = 20_000;
const COUNT_CAP = 10_000;
const MAX_PAGE = 10_000;
const LARGEST_ID = 2n ** 63n - 1n;

/** Which runs are meant; what is left out does not filter. */
export interface RunsFilter {
  readonly states?: readonly RunState[];
  readonly workflows?: readonly string[];
  /** All of them have to be there. */
  readonly tags?: Readonly<Record<string, string>>;
  /** The key of submitOnce. */
  readonly onceKey?: string;
  /** The id of the parent run. */
  readonly parent?: string;
  /** ISO 8601 with a time zone, or a Date; inclusive. */
  readonly createdFrom?: string | Date;
  /** The same, exclusive. */
  readonly createdTo?: string | Date;
}

export interface PageOptions {
  /** Rows of a page, 1 to 10,000. @default 50 */
  readonly limit?: number;
  /** `next` or `previous` of another page of the same list. */
  readonly cursor?: string;
}

export interface RunsQuery extends RunsFilter, PageOptions {
  /** By id, which is the order of submission. @default 'desc' */
  readonly direction?: 'desc' | 'asc';
}

/** A page of runs. It may be short, or empty, although more follow: only `next` tells. */
export interface RunsPage {
  readonly runs: readonly RunRecord[];
  readonly next: string | null;
  readonly previous: string | null;
}

export interface StepsQuery extends PageOptions {
  readonly states?: readonly StepState[];
  /** Only the items of this fan-out node. */
  readonly parentNode?: string;
  /** Whether input and output come along. @default false */
  readonly payloads?: boolean;
}

export interface StepsPage {
  readonly steps: readonly StepRecord[];
  readonly next: string | null;
}

export interface ExhaustedQuery extends DeadLetterFilter {
  /** Steps to list, 1 to 10,000. @default 100 */
  readonly limit?: number;
}

export interface ExhaustedPageQuery extends ExhaustedQuery, PageOptions {}

export interface ExhaustedPage {
  readonly steps: readonly ExhaustedStep[];
  readonly next: string | null;
}

export interface AuditQuery extends PageOptions {
  readonly runId?: string;
  /** `cancel`, `pause`, `resume`, `retry`, `retry_all`, `repair`, `purge`. */
  readonly action?: string;
  readonly actor?: string;
}

export interface AuditPage {
  readonly entries: readonly AuditRecord[];
  readonly next: string | null;
}

/** Lists for operators, by keyset: a page costs the same at any depth, and rows that come and go shift nothing. */
export class OperatorPages {
  constructor(private readonly engine: Engine) {}

  async runs(query: RunsQuery): Promise<RunsPage> {
    const { direction = 'desc', limit, cursor } = query;
    checkOneOf('direction', direction, ['desc', 'asc']);
    const filter = checkRunsFilter(query);
    const cursors = new Cursors('runs', { ...filter, direction });
    const size = checkLimit(limit, 50);
    const from = cursor === undefined ? undefined : cursors.decode(cursor, 1);
    const request = {
      direction: (from?.backwards ?? false) === (direction === 'asc') ? 'desc' : 'asc',
      limit: size,
      scan: SCAN,
      ...(from ? { after: checkPosition(from.at[0]) } : {}),
    } as const;
    const page = await this.read('reading of runs', (session) =>
      this.engine.inspection.runPage(session, filter, request),
    );
    const at = (id: string | undefined | null, back: boolean): string | null =>
      id == null ? null : cursors.encode({ at: [id], backwards: back });
    if (!from?.backwards) {
      return { runs: page.runs, next: at(page.next, false), previous: at(from && page.runs[0]?.id, true) };
    }
    const runs = page.runs.toReversed();
    // The next page begins with the row that this one lies before.
    const next = runs.at(-1)?.id ?? beside(from.at[0] ?? '0', direction === 'desc' ? 1n : -1n);
    return { runs, next: at(next, false), previous: at(page.next, true) };
  }

  async countRuns(filter: RunsFilter): Promise<CappedCount> {
    const checked = checkRunsFilter(filter);
    return this.read('counting of runs', (session) =>
      this.engine.inspection.countRuns(session, checked, COUNT_CAP, 2 * SCAN),
    );
  }

  async steps(runId: string, query: StepsQuery): Promise<StepsPage> {
    const { states, parentNode, payloads = false, limit, cursor } = query;
    const filter = {
      ...(states === undefined ? {} : { states: checkList('states', states, STEP_STATES) }),
      ...(parentNode === undefined ? {} : { parentNode: checkText('parentNode', parentNode) }),
    };
    const size = checkLimit(limit, 50);
    const cursors = new Cursors('steps', { runId, ...filter });
    const after = cursor === undefined ? undefined : checkText('cursor', cursors.decode(cursor, 1).at[0]);
    const request = { ...filter, payloads, limit: size + 1, ...(after === undefined ? {} : { after }) };
    const steps = await this.read(`reading of the steps of run ${runId}`, (session) =>
      this.engine.inspection.stepPage(session, runId, request),
    );
    return cutPage(steps, size, ({ node }) => cursors.encode({ at: [node], backwards: false }), 'steps');
  }

  async exhausted(query: ExhaustedPageQuery): Promise<ExhaustedPage> {
    const filter = checkDeadLetters(query);
    const size = checkLimit(query.limit, 100);
    const cursors = new Cursors('exhausted', filter);
    const at = query.cursor === undefined ? undefined : cursors.decode(query.cursor, 3).at;
    const before = at && toPosition(at);
    const steps = await this.read('reading of dead letters', (session) =>
      this.engine.deadLetters.listExhausted(session, filter, size + 1, before),
    );
    return cutPage(
      steps,
      size,
      ({ discardedAt, runId, node }) => cursors.encode({ at: [discardedAt, runId, node], backwards: false }),
      'steps',
    );
  }

  async audit(query: AuditQuery): Promise<AuditPage> {
    const { runId, action, actor } = query;
    const filter = {
      ...(runId === undefined ? {} : { runId: checkRunId(runId) }),
      ...(action === undefined ? {} : { action: checkText('action', action) }),
      ...(actor === undefined ? {} : { actor: checkText('actor', actor) }),
    };
    const size = checkLimit(query.limit, 50);
    const cursors = new Cursors('audit', filter);
    const at = query.cursor === undefined ? undefined : cursors.decode(query.cursor, 1).at[0];
    const request = { ...filter, limit: size + 1, ...(at === undefined ? {} : { before: checkPosition(at) }) };
    const entries = await this.read('reading of the audit', (session) =>
      this.engine.operations.auditPage(session, request),
    );
    return cutPage(entries, size, ({ id }) => cursors.encode({ at: [id], backwards: false }), 'entries');
  }

  private read<T>(what: string, work: (session: Session) => Promise<T>): Promise<T> {
    return onConnection(this.engine.connections, what, work);
  }
}

/** Cuts the row that was read on top of the page, which only tells that there are more. */
function cutPage<T, K extends string>(
  rows: readonly T[],
  size: number,
  cursorAt: (last: T) => string,
  key: K,
): Record<K, readonly T[]> & { next: string | null } {
  const shown = rows.slice(0, size);
  const last = rows.length > size ? shown.at(-1) : undefined;
  return { [key]: shown, next: last === undefined ? null : cursorAt(last) } as Record<K, readonly T[]> & {
    next: string | null;
  };
}

function checkRunsFilter(filter: RunsFilter): RunFilter {
  const { states, workflows, tags, onceKey, parent, createdFrom, createdTo } = filter;
  return {
    ...(states === undefined ? {} : { states: checkList('states', states, RUN_STATES) }),
    ...(workflows === undefined ? {} : { workflows: checkTexts('workflows', workflows) }),
    ...(tags === undefined ? {} : { tags: checkTags(tags) }),
    ...(onceKey === undefined ? {} : { onceKey: checkText('onceKey', onceKey) }),
    ...(parent === undefined ? {} : { parent: checkParent(parent) }),
    ...(createdFrom === undefined ? {} : { createdFrom: checkTime('createdFrom', createdFrom) }),
    ...(createdTo === undefined ? {} : { createdTo: checkTime('createdTo', createdTo) }),
  };
}

function checkLimit(limit: number | undefined, byDefault: number): number {
  return checkWhole('limit', limit ?? byDefault, 1, MAX_PAGE);
}

function checkList<T extends string>(option: string, values: readonly T[], allowed: readonly T[]): readonly T[] {
  if (!Array.isArray(values)) throw new InvalidOptionError(option, 'must be an array.');
  return [...new Set(values.map((value: unknown) => checkOneOf(option, value, allowed)))].toSorted();
}

function checkTexts(option: string, values: readonly string[]): readonly string[] {
  if (!Array.isArray(values)) throw new InvalidOptionError(option, 'must be an array.');
  return [...new Set(values.map((value: unknown) => checkText(option, value)))].toSorted();
}

function checkTags(tags: unknown): Record<string, string> {
  if (typeof tags !== 'object' || tags === null || Array.isArray(tags)) {
    throw new InvalidOptionError('tags', 'must be an object of texts.');
  }
  const entries = Object.entries(tags).map(([key, value]) => [checkText('tags', key), checkText('tags', value)]);
  return Object.fromEntries(entries.toSorted()) as Record<string, string>;
}

function checkParent(parent: unknown): string {
  if (typeof parent !== 'string' || !isId(parent)) throw new InvalidOptionError('parent', 'must be the id of a run.');
  return parent;
}

/** Postgres has no year 0, and JavaScript writes years of more digits in another way. */
const TIME = /^(?!0000)\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-](0\d|1[0-4]):[0-5]\d))?$/;

/** A time that Postgres and JavaScript read in the same way. */
function checkTime(option: string, value: unknown): string {
  const date = types.isDate(value) && !Number.isNaN(value.getTime()) ? value.toISOString() : undefined;
  const text = date ?? (typeof value === 'string' ? value : '');
  if (!TIME.test(text) || Number.isNaN(Date.parse(text)) || !isCalendarDay(text.slice(0, 10))) {
    throw new InvalidOptionError(
      option,
      `must be a Date, or a time like 2026-01-31T12:00:00Z or 2026-01-31, of the years 1 to 9999.`,
    );
  }
  return text.includes('T') ? text : `${text}T00:00:00Z`;
}

/** JavaScript takes the 30th of February for a day in March, Postgres refuses it. */
function isCalendarDay(day: string): boolean {
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}

/** The id before or after another one, as far as there are ids. */
function beside(id: string, step: bigint): string {
  const next = BigInt(id) + step;
  return String(next < 0n ? 0n : next > LARGEST_ID ? LARGEST_ID : next);
}

const isId = (text: string): boolean => /^\d{1,19}$/.test(text) && BigInt(text) <= LARGEST_ID;

/** A key of a cursor that has to be an id. Nobody but a forger brings another one. */
function checkPosition(id: string | undefined): string {
  if (id === undefined || !isId(id)) {
    throw new InvalidOptionError('cursor', 'must be one that a page of this list gave.');
  }
  return id;
}

function toPosition([discardedAt = '', runId, node = '']: readonly string[]): ExhaustedPosition {
  return {
    discardedAt: checkTime('cursor', discardedAt),
    runId: checkPosition(runId),
    node: checkText('cursor', node),
  };
}
