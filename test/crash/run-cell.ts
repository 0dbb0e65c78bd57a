import type { CrashSlot } from '../support/crash-slot.js';
import type { Incident } from './incidents.js';
import type { Cell, Scenario } from './scenarios.js';

/** Long enough that a stall of the machine loses no lease, short enough to wait for. */
const TTL_MS = 1_500;
/** Where nobody dies no lease may have to expire: a worker that waits for that fails the test by its reclaim. */
const LONG_TTL_MS = 20_000;

/**
 * Plays one cell: brings a worker to the call, lets the incident happen there, and lets the work be finished by that worker or, when
 * it is dead, by the second one. Gives what is wrong afterwards; empty when all is well.
 */
export async function runCell(slot: CrashSlot, scenario: Scenario, incident: Incident): Promise<string[]> {
  const victim = await slot.victim(scenario.victim);
  const ttlMs = scenario.ttlMs ?? (incident.kills ? TTL_MS : LONG_TTL_MS);
  const cell: Cell = { slot, victim, incident, ttlMs };
  try {
    if (!scenario.startsWorker) await victim.start({ leaseTtl: ttlMs }, true);
    const call = new MeantCall(cell, scenario, await scenario.approach(cell));
    const pid = await call.standStill();
    await incident.happen({ slot, victim, pid, endsLostCalls: scenario.endsLostCalls ?? false });
    if (incident.kills)
      await call.made.catch(() => undefined); // its order may have died with it
    else await call.made;
    return await finish(cell, scenario);
  } catch (error) {
    const said = [...victim.log, victim.stderr].join('\n');
    await slot.reset();
    throw new Error(`${(error as Error).message}\nThe worker said:\n${said}`, { cause: error });
  }
}

async function finish(cell: Cell, scenario: Scenario): Promise<string[]> {
  const { slot, victim, incident, ttlMs } = cell;
  if (incident.kills) slot.bootVictim(scenario.victim);
  const second = incident.kills ? await slot.survivor() : victim;
  if (incident.kills || scenario.startsLate) await second.start({ leaseTtl: ttlMs });
  await scenario.afterwards?.(cell, second);
  if (!incident.kills) await victim.releaseAll();
  await slot.runsEnd();
  const [row] = await slot.gate.rows<{ n: number }>(
    `select count(*)::int as n from cyclone_attempts where outcome = 'reclaimed'`,
  );
  const reclaims = (row?.n ?? 0) - (scenario.reclaims ?? 0);
  const problems = await slot.conclude();
  const lost = victim.take('lease_lost');
  if (!incident.kills && lost > 0) problems.push(`the worker took ${lost} steps for lost that were its own`);
  if (!incident.kills && reclaims > 0) problems.push(`${reclaims} steps were reclaimed although their worker lives`);
  return problems;
}

/** The call at which the incident happens, among others of its name. */
class MeantCall {
  /** Settles when whatever made the call has ended. */
  made: Promise<void> = Promise.resolve();
  private fail: ((error: Error) => void) | undefined;
  private readonly broken = new Promise<never>((_, reject) => (this.fail = reject));

  constructor(
    private readonly cell: Cell,
    private readonly scenario: Scenario,
    private readonly make: () => Promise<void>,
  ) {}

  /** Makes the call and comes back when it stands where the incident happens; gives its backend. */
  async standStill(): Promise<number> {
    const { slot, victim, incident } = this.cell;
    const { call, point, isMeant } = this.scenario;
    const { phase } = incident;
    if (phase === 'sent' && point) await slot.gate.shut(point);
    // A tick comes by itself: one that stands before the database becomes the one that is meant.
    const late = isMeant !== undefined && phase === 'before';
    // One that is to be in flight stands before the database first, so that its backend is known to have done nothing of it.
    const stop = phase === 'sent' ? 'before' : phase;
    for (let first = true; ; first = false) {
      await victim.arm(call, stop);
      if (first && !late) this.start();
      else if (!first) await victim.goOn();
      const { pid = 0 } = await Promise.race([victim.next('at', { call }), this.broken]);
      if (
        phase === 'sent' ? await this.isInFlight(pid) : phase === 'before' || !isMeant || (await isMeant(this.cell))
      ) {
        if (late) this.start();
        return pid;
      }
    }
  }

  private start(): void {
    this.made = this.make();
    this.broken.catch(() => undefined);
    this.made.catch((error: Error) => this.fail?.(error));
  }

  private async isInFlight(pid: number): Promise<boolean> {
    const { slot, victim } = this.cell;
    const { call } = this.scenario;
    const history = await slot.gate.historyOf(pid);
    await victim.arm(call, 'sent');
    await victim.goOn();
    await victim.next('at', { call, phase: 'sent' });
    return (await slot.gate.settled(pid, history)) === 'parked' || this.scenario.point === undefined;
  }
}
