import { parseDuration, parsePositiveDuration, type Duration } from '../model/duration.js';
import { NodeNotFoundError } from '../model/errors/run-errors.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { ERROR_KINDS, type ErrorKind } from '../model/states.js';
import { isStorable, storableText } from '../model/storable-text.js';
import type { ExhaustedFilter } from '../store/dead-letter-store.js';
import type { AuditNote } from '../store/operations-store.js';

const MAX_REASON_BYTES = 1_024;
const MAX_ACTOR_BYTES = 255;
const MAX_NAME_BYTES = 1_024;

/** Who changes something, and why. */
export interface ActOptions {
  /** Why, at most 1 KiB; longer texts are cut. With it or an actor, cyclone_audit says who did what and why, in the transaction of the change. */
  readonly reason?: string;
  /** Who asked for it, at most 255 bytes. @default with a reason alone the role that is logged in to the database */
  readonly actor?: string;
}

export interface RetryOptions extends ActOptions {
  /** Executions to grant beyond those that are left, 0 to 1,000,000. A reopened node always gets one (R11). @default 0 */
  readonly additionalAttempts?: number;
}

/** Which dead letters are meant; what is left out does not filter. */
export interface DeadLetterFilter {
  readonly kind?: string;
  /** `retryable` includes timeouts (R24); empty for every reason. */
  readonly reason?: ErrorKind | '';
  /** Of one cause, as `dlqGroups` tells them apart. */
  readonly fingerprint?: string;
  /** Discarded no longer ago. */
  readonly since?: Duration;
}

export const DEAD_LETTER_FILTERS = ['kind', 'reason', 'fingerprint', 'since'] as const;

/** What work on many runs has to be told. */
export interface BulkOptions extends ActOptions {
  /** Whether it only counts what it would do. Only an explicit `false` changes anything. */
  readonly dryRun: boolean;
  /** Confirms that a change without any filter is meant: it refuses without. @default false */
  readonly all?: boolean;
  /** Stops between two transactions; what was done until then stays done. */
  readonly signal?: AbortSignal;
}

/** Checks who and why. */
export function noteOf({ actor, reason }: ActOptions): AuditNote {
  if (reason !== undefined && typeof reason !== 'string') throw new InvalidOptionError('reason', 'must be a text.');
  if (actor !== undefined && (typeof actor !== 'string' || actor === '')) {
    throw new InvalidOptionError('actor', 'must be a text that is not empty.');
  }
  return {
    actor: actor === undefined ? null : storableText(actor, MAX_ACTOR_BYTES),
    reason: reason === undefined ? null : storableText(reason, MAX_REASON_BYTES),
  };
}

/** Whether anything is to go into cyclone_audit: without an actor and without a reason there is nothing to tell. */
export function isWorthNoting({ actor, reason }: AuditNote): boolean {
  return actor !== null || reason !== null;
}

/**
 * Whether a bulk operation is a dry run: unless `false` is said. An absent filter never means everything, so a change without one has to
 * say so.
 * @param named whether a filter is given
 * @param filters the filters there are, for the message; '' when there are none
 */
export function checkBulk({ dryRun, all }: Partial<BulkOptions>, named: boolean, filters: string): boolean {
  for (const [option, flag] of Object.entries({ dryRun, all })) {
    if (flag !== undefined && typeof flag !== 'boolean') throw new InvalidOptionError(option, 'must be true or false.');
  }
  if (dryRun !== false) return true;
  if (named || all === true) return false;
  const remedy = filters === '' ? 'say' : `name ${filters}, or say`;
  throw new InvalidOptionError(
    'all',
    `must be true for a change of everything: ${remedy} all: true (--all of the command). Nothing was changed.`,
  );
}

export function checkAttempts({ additionalAttempts = 0 }: RetryOptions): number {
  return checkWhole('additionalAttempts', additionalAttempts, 0, 1_000_000);
}

/** @throws NodeNotFoundError for a text that no node can have as its name */
export function checkNode(runId: string, node: unknown): string {
  if (typeof node !== 'string') throw new InvalidOptionError('node', 'must be the name of a node.');
  if (!isStorable(node)) throw new NodeNotFoundError(runId, node);
  return node;
}

export function checkWhole(option: string, value: unknown, least: number, most: number): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw new InvalidOptionError(option, `must be a whole number from ${least} to ${most}.`);
  }
  return value as number;
}

/** A text to compare with what the database holds. */
export function checkText(option: string, value: unknown): string {
  if (typeof value !== 'string' || !isStorable(value) || Buffer.byteLength(value) > MAX_NAME_BYTES) {
    throw new InvalidOptionError(option, `must be a text of at most ${MAX_NAME_BYTES} bytes that Postgres can store.`);
  }
  return value;
}

export function checkOneOf<T extends string>(option: string, value: unknown, allowed: readonly T[]): T {
  if (!allowed.includes(value as T)) throw new InvalidOptionError(option, `must be one of ${allowed.join(', ')}.`);
  return value as T;
}

export function checkDeadLetters({ kind, reason, fingerprint, since }: DeadLetterFilter): ExhaustedFilter {
  return {
    ...(kind === undefined ? {} : { kind: checkText('kind', kind) }),
    ...(reason === undefined || reason === '' ? {} : { reason: checkOneOf('reason', reason, ERROR_KINDS) }),
    ...(fingerprint === undefined ? {} : { fingerprint: checkText('fingerprint', fingerprint) }),
    ...(since === undefined ? {} : { sinceMs: parsePositiveDuration(since, 'since') }),
  };
}

/** Milliseconds; undefined stays so. */
export function checkAge(option: string, value: Duration | undefined): number | null {
  return value === undefined ? null : parseDuration(value, option);
}
