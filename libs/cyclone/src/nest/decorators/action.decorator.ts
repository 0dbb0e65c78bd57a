import type { HandlerOptions } from '../../model/options.js';
import type {
  Handler,
  MustAcceptStored,
  MustBeKnown,
  MustBePlain,
  MustReturnNothing,
} from '../../graph/handler-signature.js';
import { declareHandler } from './declare-handler.js';

/**
 * Makes a provider method an action: a handler without an output, for a side effect such as a mail or a ledger entry.
 * The signature is `(input, ctx)`; `input` must be what JSON gives back, or a DTO class named in `options.input` (R37).
 */
export function Action<In = never>(options?: HandlerOptions<In>) {
  return <M extends Handler>(
    prototype: object,
    key: string | symbol,
    _descriptor: TypedPropertyDescriptor<M> &
      MustBeKnown<M> &
      MustBePlain<M> &
      MustReturnNothing<M> &
      MustAcceptStored<M, In>,
  ): void => declareHandler('action', prototype, key, options);
}
