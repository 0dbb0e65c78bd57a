import type { StepContext } from '../graph/step-context.js';
import { PermanentError, RetryAfterError } from '../model/errors/index.js';
import type { RegisteredHandler } from './handler.js';

export const invoke = (handler: RegisteredHandler, input: unknown, context: StepContext): unknown =>
  handler.invoke(input, context);

/** What a codec refused will be refused each time, unless it says itself when to try again (R38). */
export function codecFailure(error: unknown): Error {
  const { message, cause } = error as Error;
  return RetryAfterError.is(cause) ? cause : new PermanentError(message, { cause: error });
}

/** The same with an input that a codec has encoded (R38). */
export const invokeOpened = async (
  handler: RegisteredHandler,
  input: Promise<unknown>,
  context: StepContext,
): Promise<unknown> => {
  let opened: unknown;
  try {
    opened = await input;
  } catch (error) {
    throw codecFailure(error);
  }
  context.signal.throwIfAborted();
  return handler.invoke(opened, context);
};
