import { Injectable } from '@nestjs/common';
import {
  CycloneModule,
  InjectCyclone,
  OnStepEvent,
  OperatorClient,
  Step,
  WorkerPool,
  Workflow,
  WorkflowBuilder,
  WorkflowClient,
  getOperatorClientToken,
  getWorkerPoolToken,
  getWorkflowClientToken,
  lit,
  stepsOf,
  type StepEvent,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import { Applications } from './app.fixture.js';

@Injectable()
class Work {
  @Step({ name: 'copy' }) here(input: string): string {
    return `here ${input}`;
  }
  @Step({ name: 'copy', cyclone: 'archive' }) there(input: string): string {
    return `there ${input}`;
  }
}
const { here, there } = stepsOf(Work);

@Workflow({ name: 'archiving', cyclone: 'archive' })
class Archiving implements WorkflowDefinition<string, string> {
  define(b: WorkflowBuilder, input: string) {
    return b.step(there, lit(input));
  }
}

@Injectable()
class Client {
  readonly heard: string[] = [];
  constructor(
    readonly main: WorkflowClient,
    @InjectCyclone('archive') readonly archive: WorkflowClient,
    @InjectCyclone() readonly unnamed: WorkflowClient,
  ) {}
  @OnStepEvent('completed') hear({ node }: StepEvent): void {
    this.heard.push(`main ${node}`);
  }
  @OnStepEvent('completed', { cyclone: 'archive' }) hearArchive({ node }: StepEvent): void {
    this.heard.push(`archive ${node}`);
  }
}

let apps: Applications;
beforeAll(async () => {
  apps = await Applications.create();
});
afterEach(() => apps.closeAll());
afterAll(() => apps.end());

describe('two Cyclones in one application', () => {
  it.each([
    ['a schema each', { name: 'archive', schema: 'archive', migrationsRun: true }],
    ['a DataSource each', { name: 'archive', dataSource: 'second', schema: 'second', migrationsRun: true }],
  ])('work side by side with %s, one kind in both', async (_what, archive) => {
    const app = await apps.start({
      imports: [
        apps.typeorm(),
        apps.typeorm({ name: 'second', applicationName: 'second' }),
        CycloneModule.forRoot({ migrationsRun: true }),
        CycloneModule.forRoot(archive),
      ],
      providers: [Work, Archiving, Client],
    });
    const client = app.get(Client);
    expect(client.unnamed).toBe(client.main);
    expect(client.archive).not.toBe(client.main);
    const [mine, theirs] = [await client.main.enqueue(here, 'x'), await client.archive.submit(Archiving, 'x')];
    expect([await mine.result(), await theirs.result()]).toEqual(['here x', 'there x']);

    const count = (schema: string) => apps.sql(`select workflow from ${schema}.cyclone_runs`);
    expect(await count(archive.schema)).toEqual([{ workflow: 'archiving' }]);
    for (const name of [undefined, 'archive']) await app.get<WorkerPool>(getWorkerPoolToken(name)).stop();
    expect(client.heard.toSorted()).toEqual(['archive copy', 'main copy']);
  });

  it('have tokens of their own for everything that is injected', async () => {
    const app = await apps.start({
      imports: [
        apps.typeorm(),
        CycloneModule.forRoot({ worker: false, migrationsRun: true }),
        CycloneModule.forRoot({ name: 'archive', schema: 'archive', worker: false, migrationsRun: true }),
      ],
    });
    for (const [token, type] of [
      [getWorkflowClientToken, WorkflowClient],
      [getOperatorClientToken, OperatorClient],
      [getWorkerPoolToken, WorkerPool],
    ] as const) {
      expect(token()).toBe(type);
      expect(app.get(token('archive'))).toBeInstanceOf(type);
      expect(app.get(token('archive'))).not.toBe(app.get(type));
    }
  });

  it('may have no unnamed one among them', async () => {
    const app = await apps.start({
      imports: [apps.typeorm(), CycloneModule.forRoot({ name: 'archive', schema: 'archive', migrationsRun: true })],
      providers: [Archiving, { provide: 'work', useClass: OnlyThere }],
    });
    const client = app.get<WorkflowClient>(getWorkflowClientToken('archive'));
    expect(await (await client.submit(Archiving, 'y')).result()).toBe('only there y');
  });
});

@Injectable()
class OnlyThere {
  @Step({ cyclone: 'archive' }) copy(input: string): string {
    return `only there ${input}`;
  }
}
