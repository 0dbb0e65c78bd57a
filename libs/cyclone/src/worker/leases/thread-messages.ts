import type { Lease } from '../../store/lease.js';
import type { ProgressReport } from './progress-reports.js';

/** The application name of a connection that renews leases. */
export const LEASE_CONNECTION = 'cyclone-leases';

/** From the main thread to the lease thread. */
export type ToThread =
  /** The answer to `ask`: every lease that is held, and what handlers reported since the last answer. */
  | { readonly type: 'leases'; readonly leases: readonly Lease[]; readonly progress: readonly ProgressReport[] }
  /** Renew now. */
  | { readonly type: 'beat' }
  /** The answer to `password`. */
  | { readonly type: 'password'; readonly password?: string; readonly error?: string }
  | { readonly type: 'stop' };

/** From the lease thread to the main thread. */
export type FromThread =
  /** Which leases are held? An answer also shows that the main thread is alive. */
  | { readonly type: 'ask' }
  | { readonly type: 'gone'; readonly leases: readonly Lease[] }
  /** A renewal has succeeded: the first one, or the first after one that failed. */
  | { readonly type: 'works' }
  /** Nothing can be renewed at present. */
  | { readonly type: 'fails'; readonly reason: string }
  | { readonly type: 'problem'; readonly message: string }
  /** The connection's password function lives on the main thread. */
  | { readonly type: 'password' };

/** What the lease thread is started with. */
export interface ThreadData {
  readonly owner: string;
  readonly schema: string;
  readonly leaseTtlMs: number;
  readonly stallLimitMs: number;
  readonly preparedStatements: boolean;
  readonly clientOptions: Readonly<Record<string, unknown>>;
  /** Whether the password comes from a function on the main thread. */
  readonly asksPassword: boolean;
  /** One BigInt64: when the last successful renewal was sent, on the monotonic clock. Read while messages are still unread. */
  readonly renewedAt: SharedArrayBuffer;
}
