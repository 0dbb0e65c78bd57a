import type { CanActivate, ModuleMetadata } from '@nestjs/common';
import type { Type } from '../model/options.js';
import type { PayloadPlace } from '../model/payload-codec.js';
import type { Access } from './permissions.js';

/** A request as Express and Fastify both have it. Guards may have put more on it. */
export interface AdminRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body?: unknown;
  /** Whom a guard found; Passport puts it here. */
  readonly user?: unknown;
}

/** Options of `CycloneAdminModule`. Whatever is wrong with them keeps the application from starting (R22). */
export interface CycloneAdminOptions {
  /** Where the routes are: `<path>/api/v1/…`, below a global prefix where there is one. @default 'cyclone' */
  readonly path?: string;
  /**
   * Nest guards of every route, classes or instances, in this order. A class is made with what `imports` and global modules provide.
   * Without one the application does not start, unless `insecure` says so.
   */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** What the guards need that no global module provides. */
  readonly imports?: ModuleMetadata['imports'];
  /** What the caller may do, asked once for each request, after the guards. What it throws refuses the request. @default 'all' */
  access?(request: AdminRequest): Access | Promise<Access>;
  /** Who the caller is, for `cyclone_audit`. @default what a guard left in `request.user`: its e-mail, name or id */
  getUser?(request: AdminRequest): string | undefined | Promise<string | undefined>;
  /** Every mutation answers 405. @default false */
  readonly readOnly?: boolean;
  /** Gives what may be shown of a payload. A hook that throws shows nothing. */
  redact?(value: unknown, place: PayloadPlace): unknown;
  /** Opens all routes to everybody when there are no guards; the start warns. @default false */
  readonly insecure?: boolean;
  /** The `name` of the CycloneModule to operate. @default the unnamed one */
  readonly name?: string;
}

/** Options with every default. */
export interface ResolvedAdminOptions extends Pick<CycloneAdminOptions, 'access' | 'getUser' | 'redact'> {
  readonly path: string;
  readonly guards: readonly (Type<CanActivate> | CanActivate)[];
  readonly readOnly: boolean;
  readonly name: string | undefined;
}
