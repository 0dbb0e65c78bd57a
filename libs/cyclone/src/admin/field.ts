import { Transform } from 'class-transformer';
import { ValidateBy, ValidateIf } from 'class-validator';
import { parseDuration, type Duration } from '../model/duration.js';
import { isStorable } from '../model/storable-text.js';
import type { Schema } from './schema.js';

/** What a query parameter or a property of a body may hold. */
export interface FieldKind {
  readonly schema: Schema;
  /** What it must be, for the message. */
  readonly must: string;
  accepts(value: unknown): boolean;
  /** What a text of a query string stands for; what it does not understand it gives back as it is. */
  read?(given: unknown): unknown;
}

export interface FieldDescription {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
}

const FIELDS = Symbol('cyclone:admin-fields');

/** Declares a property of a DTO: how it is read, what class-validator checks, and what the OpenAPI document says. */
export function Field(
  kind: FieldKind,
  description: string,
  { required = false, defaultsTo }: { readonly required?: boolean; readonly defaultsTo?: unknown } = {},
): PropertyDecorator {
  return (prototype, property) => {
    const name = String(property);
    const fields = [...fieldsOf(prototype.constructor as never)];
    const schema = { ...kind.schema, description, ...(defaultsTo === undefined ? {} : { default: defaultsTo }) };
    Reflect.defineMetadata(FIELDS, [...fields, { name, schema, required }], prototype.constructor);
    if (kind.read) Transform(({ value }) => kind.read?.(value))(prototype, property);
    // Not IsOptional: a null is no way to leave something out.
    if (!required) ValidateIf((_, value) => value !== undefined)(prototype, property);
    ValidateBy({
      name: 'field',
      validator: { validate: (value) => kind.accepts(value), defaultMessage: () => `${name} must be ${kind.must}` },
    })(prototype, property);
  };
}

/** The declared properties of a DTO class. */
export function fieldsOf(dto: abstract new () => object): readonly FieldDescription[] {
  return (Reflect.getMetadata(FIELDS, dto) as FieldDescription[] | undefined) ?? [];
}

const MAX_TEXT_BYTES = 1_024;

export const aText: FieldKind = {
  schema: { type: 'string', maxLength: MAX_TEXT_BYTES },
  must: `one text of at most ${MAX_TEXT_BYTES} bytes, without U+0000 and halves of surrogate pairs`,
  accepts: (value) => typeof value === 'string' && isStorable(value) && Buffer.byteLength(value) <= MAX_TEXT_BYTES,
};

/** A reason may be longer than what is kept of it. */
export const aReason: FieldKind = {
  schema: { type: 'string', maxLength: 500 },
  must: 'a text of at most 500 characters',
  accepts: (value) => typeof value === 'string' && value.length <= 500,
};

export const aRunId: FieldKind = {
  schema: { type: 'string', pattern: '^[1-9][0-9]{0,18}$' },
  must: 'the id of a run: decimal digits',
  accepts: (value) => typeof value === 'string' && /^[1-9]\d{0,18}$/.test(value) && BigInt(value) < 2n ** 63n,
};

export const aCursor: FieldKind = {
  schema: { type: 'string' },
  must: 'a cursor that a page of this list gave',
  accepts: (value) => typeof value === 'string' && value !== '',
};

export const aFlag: FieldKind = {
  schema: { type: 'boolean' },
  must: 'true or false',
  accepts: (value) => typeof value === 'boolean',
};

export const aDuration: FieldKind = {
  schema: { type: ['string', 'integer'] },
  must: "a length of time: milliseconds, or a text like '30s', '5m', '24h' or '7d'",
  read: (given) => (typeof given === 'string' && /^\d+$/.test(given) ? Number(given) : given),
  accepts(value) {
    try {
      return parseDuration(value as Duration) >= 0;
    } catch {
      return false; // the message says what it must be
    }
  },
};

const TIME =
  /^((?!0000)\d{4})-(0[1-9]|1[0-2])-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-](0\d|1[0-4]):[0-5]\d)$/;

export const aTime: FieldKind = {
  schema: { type: 'string', format: 'date-time' },
  must: 'a time with a zone, like 2026-01-31T12:00:00Z (a + is %2B in a URL)',
  accepts(value) {
    const [, year, month, day] = (typeof value === 'string' && TIME.exec(value)) || [];
    if (day === undefined) return false;
    // Date.parse takes the 30th of February for the 2nd of March; Postgres does not.
    return Number(day) >= 1 && Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  },
};

/** A whole number; in a query string its digits. */
export function aWhole(minimum: number, maximum: number): FieldKind {
  return {
    schema: { type: 'integer', minimum, maximum },
    must: `a whole number from ${minimum} to ${maximum}`,
    accepts: (value) => Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
  };
}

export function digits(kind: FieldKind): FieldKind {
  return { ...kind, read: (given) => (typeof given === 'string' && /^\d{1,15}$/.test(given) ? Number(given) : given) };
}

export function anyOf(values: readonly string[]): FieldKind {
  return {
    schema: { type: 'string', enum: values },
    must: `one of ${values.join(', ')}`,
    accepts: (value) => values.includes(value as string),
  };
}

/** A parameter that may be given several times: `?state=failed&state=paused`. */
export function aList(of: FieldKind): FieldKind {
  return {
    schema: { type: 'array', items: of.schema },
    must: `at most 50 of: ${of.must}`,
    read: (given) => (typeof given === 'string' ? [given] : given),
    accepts: (value) => Array.isArray(value) && value.length <= 50 && value.every((item) => of.accepts(item)),
  };
}

/** `name:value`; the value may contain colons. */
export const aTag: FieldKind = {
  schema: { type: 'string', pattern: '^[^:]+:' },
  must: 'name:value',
  accepts: (value) => aText.accepts(value) && /^[^:]+:/.test(value as string),
};
