// A worker in a process of its own, that a test starts, arms, kills and stops. It takes orders over the process channel, each
// answered by its id, and tells what happens. test/support/crash-worker.ts holds the other end.
import { DataSource } from 'typeorm';
import { Connections } from '#cyclone/store/connections.js';
import { Engine } from '#cyclone/store/engine.js';
import { resolveHandlerOptions } from '#cyclone/model/options.js';
import { Worker } from '#cyclone/worker/worker.js';
import { resolveWorkerOptions } from '#cyclone/worker/worker-options.js';
import { createHandlers } from './crash-handlers.mjs';

/** @typedef {import('#cyclone/store/session.js').CallPhase} CallPhase */
/** @typedef {import('#cyclone/store/raw-client.js').RawClient} RawClient */
/** @typedef {RawClient & { processID: number, connection: { stream: import('node:net').Socket } }} Client */

/** @param {object} message */
const tell = (message) => process.send?.(message, () => undefined);

/** @type {Set<string>} */
const armed = new Set();
/** @type {{ client: Client, goOn: () => void } | undefined} */
let standing;

/**
 * Connections whose flush carries completions: a flush that only looks for work may come at any time.
 * @type {WeakSet<RawClient>}
 */
const completing = new WeakSet();

/**
 * The name of a call as tests know it.
 * @param {string} call
 * @param {RawClient} client
 */
const nameOf = (call, client) => {
  if (call !== 'cyclone_flush') return call;
  return completing.has(client) ? 'completing flush' : 'claiming flush';
};

/**
 * Stands still at the armed point until the test says how it goes on. After a call was sent its answer stays unread meanwhile.
 * @param {string} plainCall
 * @param {CallPhase} phase
 * @param {RawClient} rawClient
 */
async function observe(plainCall, phase, rawClient) {
  const call = nameOf(plainCall, rawClient);
  if (!armed.delete(`${call} ${phase}`)) return;
  const client = /** @type {Client} */ (rawClient);
  if (phase === 'sent') client.connection.stream.pause();
  await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    standing = { client, goOn: resolve };
    tell({ event: 'at', call, phase, pid: client.processID });
  });
}

const dataSource = await new DataSource({
  type: 'postgres',
  url: process.env.CRASH_DATABASE,
  poolSize: 8,
  // A function cannot cross to the lease thread, so the main thread renews, where the observer sees it.
  extra: process.env.CRASH_LOCAL_HEART ? { stream: await plainSockets() } : {},
}).initialize();
const engine = new Engine(
  new Connections(dataSource, { preparedStatements: true, observer: observe }),
  'public',
  (what, error) => tell({ event: 'log', line: `${what}: ${String(error)}` }),
);
engine.events.subscribe((event) => tell({ event: 'told', ...event }));
observeHeartbeats();
tellFlushesApart();

/** @type {Map<string, () => void>} */
const held = new Map();
let holding = false;
const handlers = createHandlers(async ({ runId, node }) => {
  if (!holding) return;
  await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    held.set(`${runId}:${node}`, resolve);
    tell({ event: 'holding', runId, node });
  });
});
const registered = new Map(
  Object.entries(handlers).map(([kind, handle]) => [
    kind,
    {
      kind,
      nodeType: /** @type {const} */ ('step'),
      where: `Crash.${kind}`,
      options: resolveHandlerOptions({}, {}),
      invoke: (/** @type {any} */ input, /** @type {any} */ ctx) => {
        tell({ event: 'started', runId: ctx.runId, node: ctx.node, attempt: ctx.attempt });
        return handle(input, ctx);
      },
    },
  ]),
);
const line = (/** @type {string} */ message) => tell({ event: 'log', line: message });
const logger = { log: line, warn: line, error: line };

/** @type {Worker | undefined} */
let worker;

/** @type {Record<string, (order: any) => unknown>} */
const orders = {
  async start({ options, hold }) {
    holding = hold;
    worker = new Worker(
      engine,
      registered,
      resolveWorkerOptions({ pollInterval: 100, shutdownTimeout: 2_000, queues: { default: 20 }, ...options }, [], {
        version: 'test',
      }),
      logger,
    );
    await worker.start();
    return worker.id;
  },
  async stop() {
    armed.clear();
    await worker?.stop();
  },
  arm({ call, phase }) {
    armed.add(`${call} ${phase}`);
  },
  /** Goes on; `cut` destroys the connection first, so that an unread answer is lost. */
  goOn({ cut }) {
    const { client, goOn } = standing ?? {};
    standing = undefined;
    if (cut) client?.connection.stream.destroy();
    else client?.connection.stream.resume();
    goOn?.();
  },
  release({ runId, node }) {
    held.get(`${runId}:${node}`)?.();
    held.delete(`${runId}:${node}`);
  },
  /** Lets every handler go that is held, and holds no further one. */
  releaseAll() {
    holding = false;
    for (const resolve of held.values()) resolve();
    held.clear();
  },
  submit: ({ runs }) => engine.connections.use((session) => engine.submits.submit(session, runs)),
  submitOnce: ({ runs }) => engine.connections.use((session) => engine.submits.submitOnce(session, runs, 10_000)),
  /** Renews the leases now, as after a notification that a run of this process was cancelled. */
  beat({ runId }) {
    engine.notifier.deliver({ queues: [], cancelled: [runId] });
  },
  health: () => worker?.health(),
};

process.on('message', async (/** @type {{ id: number, order: string }} */ message) => {
  try {
    const value = await orders[message.order]?.(message);
    tell({ id: message.id, value });
  } catch (error) {
    tell({ id: message.id, error: String(error) });
  }
});
process.on('disconnect', () => process.exit()); // the test is gone
tell({ event: 'ready' });

/** Makes renewals a call that the observer sees; the session of a heart has none. */
function observeHeartbeats() {
  const { store } = engine;
  const heartbeat = store.heartbeat.bind(store);
  store.heartbeat = async (session, ...rest) => {
    await observe('heartbeat', 'before', session.client);
    const answer = heartbeat(session, ...rest);
    answer.catch(() => undefined);
    await new Promise(setImmediate); // the statement goes out
    await observe('heartbeat', 'sent', session.client);
    const missed = await answer;
    await observe('heartbeat', 'after', session.client);
    return missed;
  };
}

function tellFlushesApart() {
  const { store } = engine;
  const flush = store.flush.bind(store);
  store.flush = (session, request) => {
    if (request.completions.length > 0) completing.add(session.client);
    else completing.delete(session.client);
    return flush(session, request);
  };
}

async function plainSockets() {
  const { Socket } = await import('node:net');
  return () => new Socket();
}
