import type { CallPhase } from '#cyclone/store/session.js';
import type { CrashSlot } from '../support/crash-slot.js';
import type { WorkerProcess } from '../support/crash-worker.js';

/** What an incident does to a call that stands still. */
export interface Incident {
  readonly name: string;
  /** Where the call stands when it happens; `sent` is in the middle of the call, inside the database. */
  readonly phase: CallPhase;
  /** Whether the worker is dead afterwards, so that another one has to finish. */
  readonly kills: boolean;
  /** Whether the call can have had an effect: its transaction has committed. */
  readonly commits: boolean;
  /** Whether the worker got its answer. */
  readonly answered: boolean;
  happen(stage: Stage): Promise<void>;
}

export interface Stage {
  readonly slot: CrashSlot;
  readonly victim: WorkerProcess;
  /** The backend that executes the call. */
  readonly pid: number;
  /** Whether the worker itself ends a backend that still works on the lost call. */
  readonly endsLostCalls: boolean;
}

const incident = (
  name: string,
  phase: CallPhase,
  traits: Pick<Incident, 'kills' | 'commits' | 'answered'>,
  happen: Incident['happen'],
): Incident => ({ name, phase, ...traits, happen });

const kill = { kills: true, answered: false };
const survive = { kills: false, answered: false };

/** SIGKILL of the process. */
export const KILLED: readonly Incident[] = [
  incident('killed before', 'before', { ...kill, commits: false }, ({ victim }) => victim.kill()),
  incident(
    'killed in flight, and the server commits',
    'sent',
    { ...kill, commits: true },
    async ({ victim, slot, pid }) => {
      await victim.kill();
      await slot.gate.openAll();
      await slot.gate.gone(pid);
    },
  ),
  incident(
    'killed in flight, and the server rolls back',
    'sent',
    { ...kill, commits: false },
    async ({ victim, slot, pid }) => {
      await victim.kill();
      await slot.gate.terminate(pid);
      await slot.gate.openAll();
    },
  ),
  incident('killed after', 'after', { ...kill, commits: true, answered: true }, ({ victim }) => victim.kill()),
];

/** pg_terminate_backend. */
export const TERMINATED: readonly Incident[] = [
  incident('backend terminated before', 'before', { ...survive, commits: false }, async ({ victim, slot, pid }) => {
    await slot.gate.terminate(pid);
    await victim.goOn();
  }),
  incident('backend terminated in flight', 'sent', { ...survive, commits: false }, async ({ victim, slot, pid }) => {
    await slot.gate.terminate(pid);
    await slot.gate.openAll();
    await victim.goOn();
  }),
  incident(
    'backend terminated after',
    'after',
    { ...survive, commits: true, answered: true },
    async ({ victim, slot, pid }) => {
      await slot.gate.terminate(pid);
      await victim.goOn();
    },
  ),
];

/** The answer never arrives. */
export const UNANSWERED: readonly Incident[] = [
  incident('reply dropped', 'sent', { ...survive, commits: true }, async ({ victim, slot, pid }) => {
    await slot.gate.openAll();
    await slot.gate.idle(pid);
    await victim.goOn(true);
  }),
  incident('connection cut while the server is at work', 'sent', { ...survive, commits: true }, async (stage) => {
    const { victim, slot, pid, endsLostCalls } = stage;
    await victim.goOn(true);
    if (endsLostCalls) await slot.gate.gone(pid);
    await slot.gate.openAll();
    await slot.gate.idle(pid);
  }),
];
