import { Injectable } from '@nestjs/common';
import {
  OnStepEvent,
  RUN_EVENT_TYPES,
  STEP_EVENT_TYPES,
  Step,
  WorkerPool,
  WorkflowClient,
  isRunEvent,
  stepsOf,
  type CycloneEvent,
  type RunEvent,
  type StepEvent,
} from 'nestjs-cyclone';
import { Applications } from './app.fixture.js';

@Injectable()
class Work {
  @Step() work(input: number): number {
    return input;
  }
  @Step({ retry: { maxAttempts: 1 } }) fail(_input: number): number {
    throw new Error('no');
  }
}
const { work, fail } = stepsOf(Work);

let apps: Applications;
beforeAll(async () => {
  apps = await Applications.create();
});
afterEach(() => apps.closeAll());
afterAll(() => apps.end());

const of = (runId: string, events: readonly CycloneEvent[]): string[] =>
  events.filter((event) => event.runId === runId).map(({ type }) => type);

describe('events reach (R33)', () => {
  it('methods with @OnStepEvent() and the option onStepEvent: those of steps, or the types that they name (F34)', async () => {
    const all: StepEvent[] = [];
    const option: StepEvent[] = [];
    const everything: CycloneEvent[] = [];
    const completed: StepEvent[] = [];
    const ends: RunEvent[] = [];
    class Base {
      @OnStepEvent() hear(event: StepEvent): void {
        all.push(event);
      }
    }
    @Injectable()
    class Listening extends Base {
      override hear(event: StepEvent): void {
        super.hear(event);
      }
      @OnStepEvent('completed') hearCompleted(event: StepEvent): void {
        completed.push(event);
      }
      @OnStepEvent([...STEP_EVENT_TYPES, ...RUN_EVENT_TYPES]) hearEverything(event: CycloneEvent): void {
        everything.push(event);
      }
      @OnStepEvent(['run_completed', 'run_failed']) hearEnds(event: RunEvent): void {
        ends.push(event);
      }
    }
    const app = await apps.start({
      cyclone: { onStepEvent: (event) => option.push(event) },
      providers: [Work, Listening],
    });
    const client = app.get(WorkflowClient);
    const [good, bad] = [await client.enqueue(work, 1), await client.enqueue(fail, 1)];
    expect([await good.wait(), await bad.wait()]).toEqual(['completed', 'failed']);
    await app.get(WorkerPool).stop();

    expect(of(good.id, all).toSorted()).toEqual(['claimed', 'completed', 'submitted']);
    expect(of(bad.id, all).toSorted()).toEqual(['claimed', 'discarded', 'submitted']);
    expect(of(bad.id, everything).toSorted()).toEqual([
      'claimed',
      'discarded',
      'run_failed',
      'run_submitted',
      'submitted',
    ]);
    expect(all.map(({ kind }) => kind)).not.toContain(undefined);
    expect(option).toEqual(all);
    expect(completed).toMatchObject([{ type: 'completed', runId: good.id, node: 'work', kind: 'work', attempt: 1 }]);
    expect(ends.every(isRunEvent)).toBe(true);
    const failed = ends.find(({ type }) => type === 'run_failed');
    expect(failed).toMatchObject({ workflow: 'fail', node: 'fail', error: expect.any(String), errorKind: 'retryable' });
    expect(ends.map(({ type, runId }) => [type, runId]).toSorted()).toEqual(
      [
        ['run_completed', good.id],
        ['run_failed', bad.id],
      ].toSorted(),
    );
  });

  it('listeners from the first submit on, which a hook of the application makes', async () => {
    const types: string[] = [];
    @Injectable()
    class Early {
      constructor(private readonly client: WorkflowClient) {}
      @OnStepEvent('submitted') hear({ type }: StepEvent): void {
        types.push(type);
      }
      async onModuleInit(): Promise<void> {
        await this.client.enqueue(work, 1);
      }
    }
    await apps.start({ cyclone: { worker: false }, providers: [Work, Early] });
    expect(types).toEqual(['submitted']);
  });
});

describe('a listener that throws, rejects, hangs or answers nonsense', () => {
  it('harms nothing, and is logged (R21, S48)', async () => {
    let hung = 0;
    @Injectable()
    class Bad {
      @OnStepEvent() throws(): void {
        throw new Error('thrown by a listener');
      }
      @OnStepEvent() async rejects(): Promise<void> {
        throw new Error('rejected by a listener');
      }
      @OnStepEvent() hangs(): Promise<void> {
        hung++;
        return new Promise(() => undefined);
      }
      @OnStepEvent() nonsense(): unknown {
        return new Proxy(
          {},
          {
            get: () => {
              throw new Error('thrown by what a listener returned');
            },
          },
        );
      }
    }
    const app = await apps.start({
      cyclone: {
        onStepEvent: () => {
          throw new Error('thrown by the option');
        },
      },
      providers: [Work, Bad],
    });
    const client = app.get(WorkflowClient);
    const runs = await client.enqueueMany(work, [1, 2, 3]);
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2, 3]);
    expect(hung).toBeGreaterThan(0);
    expect(app.get(WorkerPool).health()).toMatchObject({ state: 'running' });
    expect(apps.logs.lines.filter((line) => line.startsWith('warn Cyclone The event listener'))).not.toEqual([]);
  });
});
