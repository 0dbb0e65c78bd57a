import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { parseDuration, parsePositiveDuration, type Duration } from '../model/duration.js';
import { InvalidOptionError } from '../model/errors/index.js';
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../model/payload.js';
import { isStorable } from '../model/storable-text.js';
import type { ResolvedRetention } from './retention-options.js';
import { platformTimers, type Timers } from './timers.js';

/** How a process executes steps. */
export interface WorkerOptions {
  /** The lease owner; unique among all living workers. At most 200 bytes. @default host:pid:random */
  readonly id?: string;
  /** Queue → how many of its steps run here at once. @default every queue that a handler names, 10 each */
  readonly queues?: Readonly<Record<string, number>>;
  /** How long a lease holds without renewal; it is renewed three times as often (R18). At least 100 ms. @default '30s' */
  readonly leaseTtl?: Duration;
  /** How long leases are renewed for a main thread that answers nothing (R18). @default '10m' */
  readonly stallLimit?: Duration;
  /** How often the worker looks for work that nobody told it of, and sweeps (R19). At least 10 ms. @default '1s' */
  readonly pollInterval?: Duration;
  /** After how many reclaims and interruptions the next one discards a step; false: no bound (R19, R39). @default 20 */
  readonly maxReclaims?: number | false;
  /** How long handlers may go on after the order to stop (R20). @default '25s' */
  readonly shutdownTimeout?: Duration;
  /** false: the application calls WorkerPool.start(). @default true */
  readonly autoStart?: boolean;
}

/** What the worker takes from the module's other options. */
export interface WorkerSettings {
  /** Whether to hear of work by LISTEN, on a connection of its own; polling alone is correct. @default true */
  readonly listen?: boolean;
  /** The largest output, in bytes of JSON (R36). @default 1 MiB */
  readonly maxPayloadBytes?: number;
  /** The version of the library, for cyclone_workers. */
  readonly version?: string;
  /** The sweep of runs whose retention has passed (R35). @default none */
  readonly retention?: ResolvedRetention;
  readonly timers?: Timers;
}

/** Worker options, checked, with all defaults, durations in milliseconds. */
export interface ResolvedWorkerOptions {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly queues: ReadonlyMap<string, number>;
  readonly leaseTtlMs: number;
  readonly stallLimitMs: number;
  readonly pollIntervalMs: number;
  /** null: no bound. */
  readonly maxReclaims: number | null;
  readonly shutdownTimeoutMs: number;
  readonly autoStart: boolean;
  readonly listen: boolean;
  readonly maxPayloadBytes: number;
  /** null: nothing is deleted by itself. */
  readonly retention: ResolvedRetention | null;
  readonly timers: Timers;
}

const SLOTS = 10;
const MAX_SLOTS = 100_000;
const MAX_ID_BYTES = 200;
const SHORTEST_TTL_MS = 100;
const SHORTEST_POLL_MS = 10;

/**
 * Fills in what was not said.
 * @param handlerQueues the queues that handlers and the module's defaults name
 * @throws InvalidOptionError for a value that makes no sense
 */
export function resolveWorkerOptions(
  options: WorkerOptions = {},
  handlerQueues: Iterable<string> = [],
  settings: WorkerSettings = {},
): ResolvedWorkerOptions {
  const host = hostname();
  const { pid } = process;
  return {
    id: checkId(options.id ?? `${host}:${pid}:${randomBytes(4).toString('hex')}`),
    host,
    pid,
    version: settings.version ?? 'unknown',
    queues: options.queues === undefined ? defaultQueues(handlerQueues) : checkQueues(options.queues),
    leaseTtlMs: atLeast(options.leaseTtl ?? '30s', SHORTEST_TTL_MS, 'worker.leaseTtl'),
    stallLimitMs: parsePositiveDuration(options.stallLimit ?? '10m', 'worker.stallLimit'),
    pollIntervalMs: atLeast(options.pollInterval ?? '1s', SHORTEST_POLL_MS, 'worker.pollInterval'),
    maxReclaims: checkMaxReclaims(options.maxReclaims ?? 20),
    shutdownTimeoutMs: parseDuration(options.shutdownTimeout ?? '25s', 'worker.shutdownTimeout'),
    autoStart: options.autoStart ?? true,
    listen: settings.listen ?? true,
    maxPayloadBytes: settings.maxPayloadBytes ?? DEFAULT_MAX_PAYLOAD_BYTES,
    retention: settings.retention ?? null,
    timers: settings.timers ?? platformTimers,
  };
}

function checkId(id: string): string {
  if (typeof id !== 'string' || id === '' || Buffer.byteLength(id) > MAX_ID_BYTES || !isStorable(id)) {
    throw new InvalidOptionError('worker.id', `must be a name of 1 to ${MAX_ID_BYTES} bytes, unique to this worker.`);
  }
  return id;
}

function defaultQueues(names: Iterable<string>): ReadonlyMap<string, number> {
  return new Map(Array.from(names, (name) => [name, SLOTS]));
}

function checkQueues(queues: Readonly<Record<string, number>>): ReadonlyMap<string, number> {
  if (typeof queues !== 'object' || queues === null) {
    throw new InvalidOptionError('worker.queues', 'must be an object of queue names and slots: { default: 10 }.');
  }
  const entries = Object.entries(queues);
  if (entries.length === 0) throw new InvalidOptionError('worker.queues', 'must name at least one queue.');
  for (const [name, slots] of entries) {
    if (name === '' || !isStorable(name)) throw new InvalidOptionError('worker.queues', 'has a queue without a name.');
    if (!Number.isInteger(slots) || slots < 1 || slots > MAX_SLOTS) {
      throw new InvalidOptionError(`worker.queues.${name}`, `must be a whole number from 1 to ${MAX_SLOTS}.`);
    }
  }
  return new Map(entries);
}

function atLeast(duration: Duration, leastMs: number, option: string): number {
  const ms = parsePositiveDuration(duration, option);
  if (ms < leastMs) throw new InvalidOptionError(option, `must be at least ${leastMs} ms.`);
  return ms;
}

function checkMaxReclaims(value: number | false): number | null {
  if (value === false) return null;
  if (!Number.isInteger(value) || value < 0 || value > 1_000_000) {
    throw new InvalidOptionError('worker.maxReclaims', 'must be false or a whole number from 0 to 1,000,000.');
  }
  return value;
}
