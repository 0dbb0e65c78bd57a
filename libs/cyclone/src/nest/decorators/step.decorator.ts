import type { HandlerOptions } from '../../model/options.js';
import type {
  Handler,
  MustAcceptStored,
  MustBeKnown,
  MustBePlain,
  MustReturnOutput,
} from '../../graph/handler-signature.js';
import { declareHandler } from './declare-handler.js';

/**
 * Makes a provider method a step: a handler whose output is stored and can be read downstream.
 * The signature is `(input, ctx)`; `input` must be what JSON gives back, or a DTO class named in `options.input` (R37).
 */
export function Step<In = never>(options?: HandlerOptions<In>) {
  return <M extends Handler>(
    prototype: object,
    key: string | symbol,
    _descriptor: TypedPropertyDescriptor<M> &
      MustBeKnown<M> &
      MustBePlain<M> &
      MustReturnOutput<M> &
      MustAcceptStored<M, In>,
  ): void => declareHandler('step', prototype, key, options);
}
