import type { CrashSlot } from '../support/crash-slot.js';
import { crashRun, keyed } from '../support/crash-runs.js';
import type { WorkerProcess, WorkerProcessOptions } from '../support/crash-worker.js';
import type { Incident } from './incidents.js';

/** A cell of the matrix: one incident at one call, on a slot's processes. */
export interface Cell {
  readonly slot: CrashSlot;
  readonly victim: WorkerProcess;
  readonly incident: Incident;
  readonly ttlMs: number;
}

/** A way to a call of the engine at which something happens, and what has to come of it. */
export interface Scenario {
  readonly name: string;
  /** The call, as the observer names it. */
  readonly call: string;
  /** What the call writes in its middle (CrashGate). Undefined: it writes nothing; it is in flight while its answer is unread. */
  readonly point?: string;
  readonly victim?: WorkerProcessOptions;
  /** Whether the worker ends a backend that still works on a call of this kind whose answer it lost (C4). */
  readonly endsLostCalls?: boolean;
  /** Whether only the long programme plays it. */
  readonly long?: boolean;
  /** The TTL of its leases, when the usual one does not do. */
  readonly ttlMs?: number;
  /** Leases that are taken back in this scenario without any incident. */
  readonly reclaims?: number;
  /** Whether the scenario starts the worker itself, if at all. */
  readonly startsWorker?: boolean;
  /** Whether no worker plays a part in the call, and one is started after the incident. */
  readonly startsLate?: boolean;
  /** Brings the worker to where its next such call is the one that is meant; the answer makes it make that call. */
  approach(cell: Cell): Promise<() => Promise<void>>;
  /** Whether the call that was just answered is the one that is meant. */
  isMeant?(cell: Cell): Promise<boolean>;
  /** After the incident, when the second worker is at work where one is needed. */
  afterwards?(cell: Cell, second: WorkerProcess): Promise<void>;
}

/** The node at which something happens, and one behind it. */
const flowWith = (kind: string) => crashRun({ entry: { kind }, next: { kind: 'ledger', after: ['entry'] } });
const FLOW = flowWith('ledger');

/** Submits a run in the second process, so that no call of the victim is one too many. */
async function submit(slot: CrashSlot, run = FLOW): Promise<string> {
  const survivor = await slot.survivor();
  const [id] = await survivor.submit([run]);
  return id as string;
}

/** The worker executes `kind` as the first node of a run and stands still in it; going on, it makes the call. */
const inHandler =
  (kind: string) =>
  async ({ slot, victim }: Cell) => {
    const run = await submit(slot, flowWith(kind));
    await victim.next('holding', { runId: run, node: 'entry' });
    return () => victim.releaseAll();
  };

async function countRuns(slot: CrashSlot): Promise<number> {
  const [row] = await slot.gate.rows<{ n: number }>('select count(*)::int as n from cyclone_runs');
  return row?.n ?? 0;
}

function expectRuns(actual: number, expected: number): void {
  if (actual !== expected) throw new Error(`Expected ${expected} runs, found ${actual}.`);
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'submit',
    call: 'submit',
    point: 'insert entry',
    startsWorker: true,
    startsLate: true,
    approach({ victim, incident }) {
      return Promise.resolve(async () => {
        const outcome = await victim.submit([FLOW]).then(
          () => 'acknowledged',
          () => 'refused',
        );
        const right = incident.answered && !incident.kills ? 'acknowledged' : 'refused';
        if (outcome !== right) throw new Error(`The submit was ${outcome}.`);
      });
    },
    async afterwards({ slot, incident }) {
      expectRuns(await countRuns(slot), incident.commits ? 1 : 0);
    },
  },
  {
    name: 'submitOnce',
    long: true,
    call: 'submitOnce',
    point: 'insert entry',
    startsWorker: true,
    startsLate: true,
    approach: ({ victim }) =>
      Promise.resolve(() =>
        victim.submitOnce([keyed(FLOW, 'key')]).then(
          () => undefined,
          () => undefined, // whoever got no answer asks again
        ),
      ),
    async afterwards({ slot, incident }, second) {
      const [again] = await second.submitOnce([keyed(FLOW, 'key')]);
      const right = incident.commits ? 'exists' : 'created';
      if (again?.outcome !== right) throw new Error(`The second submitOnce says ${again?.outcome}.`);
      expectRuns(await countRuns(slot), 1);
    },
  },
  {
    name: 'flush that claims',
    long: true,
    call: 'claiming flush',
    point: 'claim entry',
    endsLostCalls: true,
    startsWorker: true,
    async approach({ slot, victim, ttlMs }) {
      await submit(slot);
      // One slot: the first flush of the worker takes it, and so claims the step.
      return async () => void (await victim.start({ leaseTtl: ttlMs, queues: { default: 1 } }));
    },
  },
  {
    name: 'flush that completes and claims',
    call: 'completing flush',
    point: 'complete entry',
    endsLostCalls: true,
    approach: inHandler('plain'),
  },
  { name: 'begin', call: 'begin', long: true, approach: inHandler('ledger') },
  {
    name: 'complete',
    call: 'complete',
    point: 'complete entry',
    endsLostCalls: true,
    approach: inHandler('insideLedger'),
  },
  {
    name: 'settle a failure',
    call: 'cyclone_settle',
    point: 'put_back entry',
    endsLostCalls: true,
    approach: inHandler('failOnce'),
  },
  {
    name: 'settle a snooze',
    long: true,
    call: 'cyclone_settle',
    point: 'put_back entry',
    endsLostCalls: true,
    approach: inHandler('snoozeOnce'),
  },
  {
    name: 'heartbeat',
    call: 'heartbeat',
    point: 'beat entry',
    ttlMs: 9_000, // a renewal that takes a third of it is given up
    victim: { localHeart: true },
    async approach({ slot, victim }) {
      const run = await submit(slot, flowWith('insideLedger'));
      await victim.next('holding', { runId: run, node: 'entry' });
      return () => victim.beat(run);
    },
  },
  {
    name: 'tick that reclaims',
    call: 'cyclone_tick',
    point: 'put_back entry',
    reclaims: 2,
    ttlMs: 6_000, // nobody sweeps in the first third
    async approach({ slot, victim }) {
      await victim.releaseAll();
      // The worker sweeps only when it has been connected for a while: wait until it does.
      await expire(slot, await claimedByGhost(slot));
      await slot.runsEnd();
      const run = await claimedByGhost(slot);
      return () => expire(slot, run);
    },
    async isMeant({ slot }) {
      const [row] = await slot.gate.rows(`select 1 from cyclone_steps s join cyclone_runs r on r.id = s.run_id
        where r.state = 'running' and s.reclaims = 1`);
      return row !== undefined;
    },
  },
  {
    name: 'adopt after a lost flush',
    long: true,
    call: 'cyclone_adopt',
    async approach(cell) {
      const { slot, victim } = cell;
      const goOn = await inHandler('plain')(cell);
      await victim.arm('completing flush', 'sent');
      return async () => {
        await goOn();
        const { pid = 0 } = await victim.next('at', { call: 'completing flush' });
        await slot.gate.untilQuery(
          `select exists (select 1 from cyclone_steps where node = 'next' and state = 'running')`,
        );
        await slot.gate.idle(pid);
        await victim.goOn(true);
      };
    },
  },
];

/** A run whose first step a worker has claimed that exists no more. */
async function claimedByGhost(slot: CrashSlot): Promise<string> {
  const run = await submit(
    slot,
    crashRun({ entry: { kind: 'ledger', queue: 'ghost' }, next: { kind: 'ledger', after: ['entry'] } }),
  );
  await slot.gate.rows(
    `select * from cyclone_flush('ghost', 3600000, '{}', '{}', '{}', '{}', '{ghost}', '{1}', '{ledger}', 1000)`,
  );
  await slot.gate.rows(`update cyclone_steps set queue = 'default' where run_id = $1 and node = 'entry'`, [run]);
  return run;
}

async function expire(slot: CrashSlot, run: string): Promise<void> {
  await slot.gate.rows(
    `update cyclone_steps set lease_expiry = clock_timestamp() - interval '1 s' where run_id = $1 and node = 'entry'`,
    [run],
  );
}
