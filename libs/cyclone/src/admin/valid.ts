import { ValidationPipe, type ArgumentMetadata } from '@nestjs/common';
import type { Type } from '../model/options.js';
import { fieldsOf } from './field.js';
import { RefusedRequest } from './problem.js';

interface PropertyError {
  readonly constraints?: Readonly<Record<string, string>>;
}

/** Our own, so that no pipe of the application decides what these routes take, or is changed by them. */
const pipe = new ValidationPipe({
  transform: true,
  whitelist: true,
  forbidNonWhitelisted: true,
  exceptionFactory: (errors: readonly PropertyError[]) =>
    refusal(errors.flatMap(({ constraints }) => Object.values(constraints ?? {}))),
});

/**
 * What a query or a body holds, as an instance of its DTO class.
 * @throws RefusedRequest with every problem
 */
export async function valid<T extends object>(
  given: unknown,
  dto: Type<T> | undefined,
  where: 'query' | 'body',
): Promise<T> {
  const value: unknown = given ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw refusal([`the ${where} must be an object`]);
  // A copy of its own properties: parsers of query strings give objects without a prototype.
  const copy = { ...value };
  // Before the pipe, which drops names like __proto__ and constructor without a word.
  const known = dto ? fieldsOf(dto).map(({ name }) => name) : [];
  const unknown = Object.keys(copy).filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    const names = known.length === 0 ? 'nothing' : known.join(', ');
    throw refusal(unknown.map((name) => `"${name.slice(0, 100)}" is not known, the ${where} may have: ${names}`));
  }
  if (!dto) return copy as T;
  return (await pipe.transform(copy, { type: where, metatype: dto } satisfies ArgumentMetadata)) as T;
}

function refusal(problems: readonly string[]): RefusedRequest {
  const shown = problems.slice(0, 10);
  return new RefusedRequest('CYCLONE_INVALID_REQUEST', `${shown.join('; ')}.`, shown);
}
