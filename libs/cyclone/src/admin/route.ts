import type { OperatorClient } from '../client/operator-client.js';
import type { Type } from '../model/options.js';
import type { AdminService } from './admin.service.js';
import type { Caller } from './caller.js';
import type { Permission } from './permissions.js';
import type { Schema } from './schema.js';

/** A request that has passed all checks. */
export interface Call<Q extends object = object, B extends object = object> {
  readonly service: AdminService;
  /** Reads with a time limit on each statement. */
  readonly reader: OperatorClient;
  /** Changes; every one with `caller.actor`, for the audit. */
  readonly operator: OperatorClient;
  readonly caller: Caller;
  readonly id: string;
  readonly node: string;
  readonly query: Q;
  readonly body: B;
  /** Where the API is, for links: the path before the route. */
  readonly base: string;
}

/** A route: all that the router, the guard and the OpenAPI document have to know about it. */
export interface Route<Q extends object = object, B extends object = object> {
  /** Its name in the OpenAPI document, and of its method in the controller. */
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /** Below `<path>/api/v1`; `:id` is a run and `:node` a node. */
  readonly path: string;
  readonly permission: Permission;
  readonly summary: string;
  /** What it may be asked; nothing when left out. */
  readonly query?: Type<Q>;
  readonly body?: Type<B>;
  readonly answer: Schema;
  handle(call: Call<Q, B>): Promise<object>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- whatever they take
export type AnyRoute = Route<any, any>;

/** Infers the DTOs of a route. */
export function route<Q extends object = object, B extends object = object>(definition: Route<Q, B>): Route<Q, B> {
  return definition;
}
