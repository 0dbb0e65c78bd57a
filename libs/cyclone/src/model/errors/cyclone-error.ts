/** Each error class has a key of its own in the global symbol registry, which all copies of the package and all realms share. */
const brandOf = (code: string): symbol => Symbol.for(`nestjs-cyclone:error:${code}`);

/**
 * The base of everything that Cyclone throws on purpose. `code` is stable, the message says what to do next.
 *
 * Tell errors with `is`, which works across copies of the package and across realms where `instanceof` does not:
 * `CycloneError.is(e)` for any of them, `RunNotFoundError.is(e)` for one kind and its subclasses.
 */
export class CycloneError extends Error {
  static readonly code: string = 'CYCLONE_ERROR';

  /** The stable code of the class, for example `CYCLONE_RUN_NOT_FOUND`. */
  readonly code: string;

  /** Whether the cause passes by itself, so that the same call may succeed later: an outage, a lack of something, a conflict. */
  declare readonly transient: boolean;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = new.target.code;
  }

  /** Whether a thrown value is an error of this class or of a subclass, from whatever copy of the package. Never throws. */
  static is<C extends abstract new (...args: never[]) => Error>(
    this: C & { readonly code: string },
    thrown: unknown,
  ): thrown is InstanceType<C> {
    if ((typeof thrown !== 'object' && typeof thrown !== 'function') || thrown === null) return false;
    const brand = brandOf(this.code);
    try {
      // A subclass that an application declares has no brand of its own, so only its own prototype can tell it.
      return Object.hasOwn(this.prototype, brand)
        ? (thrown as Record<symbol, unknown>)[brand] === true
        : thrown instanceof this;
    } catch {
      return false; // a revoked or hostile proxy is none of ours
    }
  }
}

/** Gives a class its brand and its name, both on the prototype: a minifier may rename the class, and inspection stays short. */
export function identify(errorClass: { readonly code: string; readonly prototype: Error }, name: string): void {
  Object.defineProperties(errorClass.prototype, {
    name: { value: name, writable: true, configurable: true },
    [brandOf(errorClass.code)]: { value: true },
  });
}

/** Says of all errors of a class, on the prototype, whether what caused them passes by itself. */
export function markTransient(errorClass: { readonly prototype: Error }, transient = true): void {
  Object.defineProperty(errorClass.prototype, 'transient', { value: transient, writable: true, configurable: true });
}

identify(CycloneError, 'CycloneError');
markTransient(CycloneError, false);
