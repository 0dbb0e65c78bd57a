import { describeFailure, type Failure } from '../model/failure.js';
import { errorFingerprint } from '../model/fingerprint.js';
import { asciiText, MAX_ERROR_BYTES, MAX_STACK_BYTES, storableText } from '../model/storable-text.js';
import type { Settlement } from '../store/engine-store.js';
import type { Execution } from './execution.js';

/** Back at once, uncharged: an orderly shutdown (R20). */
export function released(execution: Execution): Settlement {
  return { ...blank(execution), outcome: 'released' };
}

/** Charged: back with a backoff, or discarded (R15). `delayMs` null lets the database compute the backoff (C16). */
export function failed(execution: Execution, failure: Failure, delayMs: number | null): Settlement {
  const { error, errorKind, panicStack } = failure;
  const fingerprint = errorFingerprint({ kind: execution.kind, errorKind, error });
  return { ...blank(execution), outcome: 'failed', error, errorKind, panicStack, fingerprint, delayMs };
}

/** Back after a delay, uncharged (R15). */
export function snoozed(execution: Execution, delayMs: number): Settlement {
  return { ...blank(execution), outcome: 'snoozed', delayMs };
}

/** Back with a backoff of the engine's, uncharged: the database or the network failed (R39). */
export function interrupted(execution: Execution, interruption: Error): Settlement {
  return { ...blank(execution), outcome: 'interrupted', error: describeFailure(interruption).error };
}

/** Of a completion that the database refuses for good. */
export function completionRefusal(error: unknown): Error {
  const why = error instanceof Error ? error.message : String(error);
  return new Error(`The database refuses the completion of this step: ${why}`, { cause: error });
}

/** A settlement that was refused, in characters that every database has. A failure is permanent: it would be refused each time. */
export function plainSettlement(settlement: Settlement, refusal: unknown): Settlement {
  const plain = (text: string | null, maxBytes: number): string | null =>
    text === null ? null : storableText(asciiText(text), maxBytes);
  const { outcome, error, panicStack } = settlement;
  const texts = { error: plain(error, MAX_ERROR_BYTES), panicStack: plain(panicStack, MAX_STACK_BYTES) };
  if (outcome !== 'failed' && outcome !== 'timed_out') return { ...settlement, ...texts };
  const why = `The database refuses to store the failure of this step (${describeFailure(refusal).error}): ${error ?? ''}`;
  return { ...settlement, ...texts, outcome: 'failed', errorKind: 'permanent', error: plain(why, MAX_ERROR_BYTES) };
}

function blank({ runId, node, generation }: Execution): Omit<Settlement, 'outcome'> {
  return { runId, node, generation, error: null, errorKind: null, panicStack: null, fingerprint: null, delayMs: null };
}
