import { CycloneError, identify, markTransient } from './cyclone-error.js';

/** A workflow whose graph cannot be submitted (R3). Nothing was written. */
export class InvalidGraphError extends CycloneError {
  static override readonly code = 'CYCLONE_INVALID_GRAPH';
  static {
    identify(this, 'InvalidGraphError');
  }
  /** The node at fault; absent when the graph as a whole is. */
  readonly node?: string;
  /** The workflow, once it is known. */
  readonly workflow?: string;
  constructor(
    message: string,
    at: { readonly node?: string; readonly workflow?: string } = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    if (at.node !== undefined) this.node = at.node;
    if (at.workflow !== undefined) this.workflow = at.workflow;
  }
}

/** A value that JSON or Postgres cannot hold (R36). */
export class InvalidPayloadError extends CycloneError {
  static override readonly code = 'CYCLONE_INVALID_PAYLOAD';
  static {
    identify(this, 'InvalidPayloadError');
  }
  constructor(
    /** Where in the value, for example `input.lines[3].price`. */
    readonly path: string,
    /** What is wrong with it and what to pass instead. */
    readonly problem: string,
    /** The node whose input it is, when there is one. */
    readonly node?: string,
    options?: ErrorOptions,
  ) {
    super(`${node === undefined ? '' : `Node "${node}": `}${path} ${problem}`, options);
  }
}

/** A value over the limit on payloads (R36), counted in bytes of UTF-8. */
export class PayloadTooLargeError extends CycloneError {
  static override readonly code = 'CYCLONE_PAYLOAD_TOO_LARGE';
  static {
    identify(this, 'PayloadTooLargeError');
  }
  constructor(
    readonly path: string,
    readonly maxBytes: number,
    readonly node?: string,
  ) {
    super(
      `${node === undefined ? '' : `Node "${node}": `}${path} is larger than ${maxBytes} bytes as JSON. ` +
        `Store the bulk elsewhere and pass a reference to it, or raise limits.maxPayloadBytes.`,
    );
  }
}

/** The codec of a Cyclone could not encode or decode a payload (R38). Its own error is the `cause`. */
export class PayloadCodecError extends CycloneError {
  static override readonly code = 'CYCLONE_PAYLOAD_CODEC';
  static {
    identify(this, 'PayloadCodecError');
  }
  readonly runId: string;
  readonly node: string;
  constructor(direction: 'encode' | 'decode', place: { runId: string; node: string; part: string }, cause: unknown) {
    const { runId, node, part } = place;
    const reason = cause instanceof Error ? cause.message : String(cause);
    // An input is encoded before its run is made.
    const submit = direction === 'encode' && part === 'input';
    super(
      `The codec could not ${direction} the ${part} of node "${node}"${submit ? '' : ` of run ${runId}`}: ${reason}. ` +
        (submit
          ? 'Nothing was submitted. Correct the codec or its keys, then submit again.'
          : 'Give every process the same codec and all keys in use, then retry the run.'),
      { cause },
    );
    this.runId = runId;
    this.node = node;
  }
}

/** An input that its DTO class refuses (R37). */
export class InputValidationError extends CycloneError {
  static override readonly code = 'CYCLONE_INPUT_VALIDATION';
  static {
    identify(this, 'InputValidationError');
  }
  constructor(
    /** What was checked: `input of node "charge"`, `input of workflow place_order`. */
    readonly subject: string,
    /** One sentence for each violated constraint. */
    readonly problems: readonly string[],
    readonly node?: string,
    options?: ErrorOptions,
  ) {
    super(
      `The ${subject} is invalid: ${problems.join('; ')}. Correct the value, or the constraints of its class.`,
      options,
    );
  }
}

/**
 * A keyed submit in the caller's transaction met another transaction with the same key (C7): one that has committed since this
 * one took its snapshot (REPEATABLE READ, SERIALIZABLE), or one that does not end. The caller's transaction is not aborted.
 */
export class TransactionConflictError extends CycloneError {
  static override readonly code = 'CYCLONE_TRANSACTION_CONFLICT';
  static {
    identify(this, 'TransactionConflictError');
    markTransient(this);
  }
  constructor(
    readonly workflow: string,
    readonly key: string,
    /** `snapshot`: this transaction is too old to see the other one's run; `busy`: the other one is still open. */
    readonly reason: 'snapshot' | 'busy' = 'snapshot',
    options?: ErrorOptions,
  ) {
    super(
      reason === 'snapshot'
        ? `Another transaction has submitted ${workflow} with the key "${key}" since this transaction took its snapshot. ` +
            `Roll back and run it again, or submit in a READ COMMITTED transaction.`
        : `Another transaction has submitted ${workflow} with the key "${key}" and does not end. ` +
            `Roll back and run this one again; the two may be waiting for each other.`,
      options,
    );
  }
}
