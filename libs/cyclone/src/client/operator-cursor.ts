import { createHash } from 'node:crypto';
import { InvalidOptionError } from '../model/errors/setup-errors.js';

/** A place in a list, and the way to go from it. */
export interface Position {
  /** The keys of the row beside which the page lies. */
  readonly at: readonly string[];
  /** Whether the page lies before that row. */
  readonly backwards: boolean;
}

/**
 * Cursors of one list with one filter. They are opaque, and one of another list or another filter is refused: its page would be
 * neither the next one of the old filter nor the first of the new.
 */
export class Cursors {
  private readonly scope: string;

  /** @param filter what JSON makes the same of is the same filter */
  constructor(list: string, filter: unknown) {
    this.scope = createHash('sha256')
      .update(`${list} ${JSON.stringify(filter)}`)
      .digest('base64url')
      .slice(0, 12);
  }

  encode({ at, backwards }: Position): string {
    return Buffer.from(JSON.stringify([this.scope, backwards ? 1 : 0, ...at])).toString('base64url');
  }

  /** @throws InvalidOptionError for what this list never gave */
  decode(cursor: string, keys: number): Position {
    const parts = partsOf(cursor);
    if (parts?.length !== keys + 2 || (parts[1] !== 0 && parts[1] !== 1)) {
      throw new InvalidOptionError('cursor', 'must be one that a page of this list gave.');
    }
    const [scope, backwards, ...at] = parts;
    if (scope !== this.scope) {
      throw new InvalidOptionError('cursor', 'comes from a page with another filter. Begin again without a cursor.');
    }
    if (!at.every((key) => typeof key === 'string')) {
      throw new InvalidOptionError('cursor', 'must be one that a page of this list gave.');
    }
    return { at: at as string[], backwards: backwards === 1 };
  }
}

function partsOf(cursor: unknown): unknown[] | undefined {
  if (typeof cursor !== 'string' || cursor.length > 4_096) return undefined;
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(parts) ? parts : undefined;
  } catch {
    return undefined; // what is no JSON is no cursor, and the caller says so
  }
}
