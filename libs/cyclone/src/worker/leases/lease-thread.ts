import { parentPort, workerData } from 'node:worker_threads';
import pg from 'pg';
import { startTimer } from '../../model/timer.js';
import { EngineStore } from '../../store/engine-store.js';
import type { Lease } from '../../store/lease.js';
import type { RawClient } from '../../store/raw-client.js';
import { Heart } from './heart.js';
import { LEASE_CONNECTION, type FromThread, type ThreadData, type ToThread } from './thread-messages.js';

/** The lease thread (R18): renews leases on a connection of its own, so that a handler that blocks the event loop keeps its lease. */
if (!parentPort) throw new Error('This file is started by the worker as a thread.');
const port = parentPort;
const data = workerData as ThreadData;
const renewedAt = new BigInt64Array(data.renewedAt);
const tell = (message: FromThread): void => port.postMessage(message);

let works = false;
let answerLeases: ((leases: readonly Lease[] | undefined) => void) | undefined;
let answerPassword: { resolve(password: string): void; reject(error: Error): void } | undefined;

const heart = new Heart(data, new EngineStore(data.schema), {
  leases: (limitMs) =>
    new Promise((resolve) => {
      const limit = startTimer(limitMs, () => resolve(undefined));
      answerLeases = (leases) => {
        limit.cancel();
        resolve(leases);
      };
      tell({ type: 'ask' });
    }),
  connect: async (limitMs) => {
    const client = new pg.Client({
      ...data.clientOptions,
      ...(data.asksPassword ? { password } : {}),
      connectionTimeoutMillis: limitMs,
      application_name: LEASE_CONNECTION,
    });
    client.on('error', () => undefined); // heard of by the call that fails
    await client.connect();
    return client as unknown as RawClient;
  },
  gone: (leases) => tell({ type: 'gone', leases }),
  renewed: (sentAt) => {
    Atomics.store(renewedAt, 0, BigInt(sentAt));
    if (!works) tell({ type: 'works' });
    works = true;
  },
  failed: (error) => {
    works = false;
    tell({ type: 'fails', reason: String(error) });
  },
  problem: (message, error) => tell({ type: 'problem', message: `${message}: ${String(error)}` }),
});

function password(): Promise<string> {
  return new Promise((resolve, reject) => {
    answerPassword = { resolve, reject };
    tell({ type: 'password' });
  });
}

port.on('message', (message: ToThread) => {
  switch (message.type) {
    case 'leases':
      heart.report(message.progress); // of an answer that comes too late as well
      answerLeases?.(message.leases);
      break;
    case 'beat':
      heart.beatNow();
      break;
    case 'password':
      if (message.password !== undefined) answerPassword?.resolve(message.password);
      else answerPassword?.reject(new Error(message.error));
      break;
    case 'stop':
      void heart.stop().then(() => port.close());
  }
});
heart.start();
