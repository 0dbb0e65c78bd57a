import { sqlStateOf } from './sql-state.js';

/** What must not be stored of an error that comes from the database. */
export interface Secrets {
  /** Query parameters, longest first. */
  readonly values: readonly string[];
  /** Messages that quote a value of their own accord, and what to say in their place. */
  readonly messages: readonly (readonly [message: string, safe: string])[];
  /** There are too many parameters to look for: say nothing of the message at all. */
  readonly silent: boolean;
}

const NOTHING: Secrets = { values: [], messages: [], silent: false };
const BLANK = '…';
const MAX_VALUES = 2_000;
/** How deep parameters are looked into. */
const MAX_DEPTH = 8;
/** How many errors, causes and members of causes. */
const MAX_ERRORS = 200;

/** Query parameters and value-quoting messages of a database error, or of one among its causes and members. Never throws. */
export function secretsOf(thrown: unknown): Secrets {
  const values = new Set<string>();
  const messages: (readonly [string, string])[] = [];
  try {
    const errors: unknown[] = [thrown];
    for (let index = 0; index < errors.length && index < MAX_ERRORS; index++) {
      const error = errors[index];
      if (typeof error !== 'object' || error === null) continue;
      const fields = error as Record<string, unknown>;
      collect(fields['parameters'], values);
      const state = sqlStateOf(fields);
      if (state?.startsWith('22') && typeof fields['message'] === 'string' && fields['message'] !== '') {
        // Data exceptions quote the offending value, which may contain quotes itself; servers in other languages use other quotes.
        messages.push([fields['message'], fields['message'].replace(/["'«„“].*["'»“”]/s, `"${BLANK}"`)]);
      }
      for (const inner of [
        fields['cause'],
        ...(Array.isArray(fields['errors']) ? fields['errors'].slice(0, MAX_ERRORS) : []),
      ]) {
        if (!errors.includes(inner)) errors.push(inner);
      }
    }
  } catch {
    return { ...NOTHING, silent: true };
  }
  if (values.size === 0 && messages.length === 0) return NOTHING;
  return { values: [...values].toSorted((a, b) => b.length - a.length), messages, silent: values.size >= MAX_VALUES };
}

/** The text with every secret blanked. */
export function withoutSecrets(text: string, secrets: Secrets): string {
  if (secrets.silent) return 'A database query failed; its message is withheld because it may quote query parameters.';
  let safe = text;
  for (const [message, replacement] of secrets.messages) safe = safe.replaceAll(message, () => replacement);
  for (const value of secrets.values) {
    // Blanking each "1" would leave nothing to read: a short value is blanked where it stands between quotes or brackets.
    if (value.length > 3) safe = safe.replaceAll(value, BLANK);
    else
      for (const [open, close] of ['""', "''", '()'] as const)
        safe = safe.replaceAll(`${open}${value}${close}`, `${open}${BLANK}${close}`);
  }
  return safe;
}

/** The leaves of query parameters, as texts. */
function collect(value: unknown, into: Set<string>, depth = 0): void {
  if (into.size >= MAX_VALUES) return;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') {
    const leaf = String(value);
    if (leaf !== '') into.add(leaf);
    if (depth < MAX_DEPTH && (leaf.startsWith('{') || leaf.startsWith('['))) collectJson(leaf, into, depth + 1);
  } else if (typeof value === 'object' && value !== null && depth < MAX_DEPTH) {
    for (const item of Object.values(value)) collect(item, into, depth + 1);
  }
}

/** Parameters are often JSON text, and a message may quote one field of it. */
function collectJson(text: string, into: Set<string>, depth: number): void {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return; // not JSON after all; the text as a whole is in the set
  }
  collect(parsed, into, depth);
}
