import { ValidationPipe, type ArgumentMetadata } from '@nestjs/common';
import type { Type } from '../model/options.js';
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
  if (!dto) {
    const names = Object.keys(copy);
    if (names.length > 0) throw refusal(names.map((name) => `property ${name.slice(0, 100)} should not exist`));
    return copy as T;
  }
  return (await pipe.transform(copy, { type: where, metatype: dto } satisfies ArgumentMetadata)) as T;
}

function refusal(problems: readonly string[]): RefusedRequest {
  const shown = problems.slice(0, 20);
  return new RefusedRequest('CYCLONE_INVALID_REQUEST', `${shown.join('; ')}.`, shown);
}
