/** What belongs to a pool, or to the client's own plumbing, and says nothing about how to reach the server. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'max',
  'min',
  'maxUses',
  'idleTimeoutMillis',
  'allowExitOnIdle',
  'maxLifetimeSeconds',
  'log',
  'Client',
  'Promise',
  'types',
  'verify',
  'onConnect',
  'poolSize',
]);

/** Connection options as another thread can have them. */
export interface ThreadOptions {
  readonly clientOptions: Readonly<Record<string, unknown>>;
  /** The password is a function, which stays here and is asked at each connect. */
  readonly asksPassword: boolean;
}

/** Undefined when something in them works on this thread only: a function for the socket or for TLS. */
export function toThreadOptions(options: Readonly<Record<string, unknown>>): ThreadOptions | undefined {
  const asksPassword = typeof options['password'] === 'function';
  const clientOptions: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (LEFT_OUT.has(name) || value === undefined || (name === 'password' && asksPassword)) continue;
    clientOptions[name] = name === 'ssl' ? plainSsl(value) : value;
  }
  try {
    return { clientOptions: structuredClone(clientOptions), asksPassword };
  } catch {
    return undefined; // it holds a function or a native object, which no thread can be given
  }
}

/** The pool hides the key from enumeration, and so from cloning. */
function plainSsl(ssl: unknown): unknown {
  if (typeof ssl !== 'object' || ssl === null) return ssl;
  const { key } = ssl as { key?: unknown };
  return key === undefined ? { ...ssl } : { ...ssl, key };
}
