import { types } from 'node:util';
import type { SubmitOptions } from '../graph/client-types.js';
import { parseDuration, parsePositiveDuration, type Duration } from '../model/duration.js';
import { CycloneError } from '../model/errors/cyclone-error.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { checkKeys } from '../model/known-keys.js';
import { resolveHandlerOptions, type ExecutionOptions } from '../model/options.js';
import { encodePayload } from '../model/payload.js';
import { isStorable } from '../model/storable-text.js';

/** The index on keys takes no more. */
const MAX_KEY_BYTES = 512;
const MAX_TAG_BYTES = 64 * 1024;
/** A text without a zone means another moment on every machine. */
const ISO_WITH_ZONE = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)$/;

const SUBMIT_OPTIONS = [
  'tx',
  'delay',
  'startAt',
  'queue',
  'priority',
  'runDeadline',
  'tags',
] as const satisfies readonly (keyof SubmitOptions)[];

/** The options of a submit, checked and in the units of the database. */
export interface SubmitSettings {
  readonly delayMs: number | null;
  readonly startAt: string | null;
  readonly deadlineMs: number | null;
  /** JSON text. */
  readonly tags: string | null;
  /** Queue and priority of nodes that say nothing themselves (R9). */
  readonly execution: ExecutionOptions | undefined;
}

/**
 * @param deadline of the workflow, when the submit names none
 * @throws InvalidOptionError naming the option (R9)
 */
export function resolveSettings(options: SubmitOptions = {}, deadline?: Duration): SubmitSettings {
  checkKeys(options, SUBMIT_OPTIONS, '', 'the submit');
  const { delay, startAt, queue, priority, tags } = options;
  if (delay !== undefined && startAt !== undefined) {
    throw new InvalidOptionError('startAt', 'excludes delay: give one of them.');
  }
  const delayMs = delay === undefined ? 0 : parseDuration(delay, 'delay');
  const start = startAt === undefined ? null : parseStart(startAt);
  const runDeadline = options.runDeadline ?? deadline;
  const execution =
    queue === undefined && priority === undefined
      ? undefined
      : { ...(queue === undefined ? {} : { queue }), ...(priority === undefined ? {} : { priority }) };
  if (execution) resolveHandlerOptions({}, execution); // also when every node has a queue and a priority of its own
  return {
    delayMs: delayMs === 0 ? null : delayMs,
    startAt: start === null ? null : start.toISOString(),
    deadlineMs: runDeadline === undefined ? null : parsePositiveDuration(runDeadline, 'runDeadline'),
    tags: tags === undefined ? null : encodeTags(tags),
    execution,
  };
}

/** @throws InvalidOptionError when it cannot be a key of submitOnce (R7) */
export function checkKey(key: unknown): string {
  if (typeof key !== 'string' || key === '' || Buffer.byteLength(key) > MAX_KEY_BYTES || !isStorable(key)) {
    throw new InvalidOptionError('key', `must be a text of 1 to ${MAX_KEY_BYTES} bytes that Postgres can store.`);
  }
  return key;
}

function parseStart(startAt: Date | string): Date {
  const date =
    typeof startAt === 'string'
      ? new Date(ISO_WITH_ZONE.test(startAt) ? startAt.replace(/([+-]\d\d)$/, '$1:00') : NaN)
      : types.isDate(startAt)
        ? startAt
        : new Date(NaN);
  const year = date.getUTCFullYear();
  if (!(year >= 1 && year <= 9999)) {
    throw new InvalidOptionError(
      'startAt',
      `must be a valid Date, or a text like '2030-01-31T08:00:00Z' with its zone, of the years 1 to 9999.`,
    );
  }
  return date;
}

function encodeTags(tags: unknown): string | null {
  if (typeof tags !== 'object' || tags === null || Array.isArray(tags)) {
    throw new InvalidOptionError('tags', 'must be an object of texts.');
  }
  const entries = Object.entries(tags);
  for (const [name, value] of entries) {
    if (typeof value !== 'string')
      throw new InvalidOptionError(`tags.${name}`, `must be a text, not a ${typeof value}.`);
  }
  try {
    return entries.length === 0
      ? null
      : encodePayload(Object.fromEntries(entries), { maxBytes: MAX_TAG_BYTES, path: 'tags' });
  } catch (error) {
    if (!CycloneError.is(error)) throw error;
    throw new InvalidOptionError('tags', `cannot be stored: ${error.message}`, { cause: error });
  }
}
