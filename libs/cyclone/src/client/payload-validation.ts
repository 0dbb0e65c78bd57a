import 'reflect-metadata';
import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validate, type ValidationError } from 'class-validator';
import { InputValidationError } from '../model/errors/graph-errors.js';
import type { Type } from '../model/options.js';

/**
 * Makes an instance of a DTO class of a value as it came out of JSON, and checks it (R37). The only user of class-transformer and
 * class-validator.
 * @param subject what the value is, for the error: `input of node "charge"`
 * @throws InputValidationError with every violated constraint
 */
export async function reviveInput<T>(type: Type<T>, value: unknown, subject: string, node?: string): Promise<T> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const is = value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`;
    throw new InputValidationError(subject, [`it must be an object for ${type.name}, not ${is}`], node);
  }
  let instance: T;
  try {
    instance = plainToInstance(type, value);
  } catch (error) {
    const problem = `no instance of ${type.name} could be made of it; constructors are called without arguments, and @Transform() functions with any value`;
    throw new InputValidationError(subject, [problem], node, { cause: error });
  }
  const errors = await validate(instance as object, {
    forbidUnknownValues: false, // a class may just revive Dates and have no constraint
    validationError: { target: false, value: false },
  });
  if (errors.length > 0) throw new InputValidationError(subject, problemsOf(errors), node);
  return instance;
}

/** Whether a class has constraints of class-validator, inherited ones included: then it is the DTO class of whom it is a parameter of (R37). */
export function hasConstraints(type: unknown): type is Type {
  return (
    typeof type === 'function' && getMetadataStorage().getTargetValidationMetadatas(type, '', false, false).length > 0
  );
}

/** One sentence for each violated constraint, with the path to nested values. */
function problemsOf(errors: readonly ValidationError[], parent = ''): string[] {
  return errors.flatMap((error) => [
    ...Object.values(error.constraints ?? {}).map((sentence) => `${parent}${sentence}`),
    ...problemsOf(error.children ?? [], `${parent}${error.property}.`),
  ]);
}
