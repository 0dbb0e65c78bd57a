import { Injectable, Scope } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { getHandlerMetadata, getWorkflowMetadata } from '../../graph/metadata.js';
import type { WorkflowBuilder } from '../../graph/builder.js';
import { OnStepEvent } from './on-step-event.decorator.js';
import { Step } from './step.decorator.js';
import { Workflow } from './workflow.decorator.js';

@Injectable()
class Prices {
  readonly list = [1];
}

@Workflow({ name: 'quote', runDeadline: '1d' })
class Quote {
  constructor(readonly prices: Prices) {}
  define(_b: WorkflowBuilder, _input: string): void {}
}

@Workflow({ name: 'transient' })
@Injectable({ scope: Scope.TRANSIENT })
class Transient {
  define(_b: WorkflowBuilder, _input: string): void {}
}

class Nameless {
  define(_b: WorkflowBuilder, _input: string): void {}
}

describe('@Workflow()', () => {
  it('makes a class a provider whose constructor is injected', async () => {
    const module = await Test.createTestingModule({ providers: [Prices, Quote] }).compile();
    expect(module.get(Quote).prices).toBe(module.get(Prices));
  });

  it('notes its name and options; the name is never that of the class (R40)', () => {
    expect(getWorkflowMetadata(Quote)).toEqual({ name: 'quote', options: { name: 'quote', runDeadline: '1d' } });
    (Workflow as unknown as () => (target: typeof Nameless) => void)()(Nameless);
    expect(getWorkflowMetadata(Nameless)).toEqual({ name: '', options: {} });
  });

  it('keeps the options of an @Injectable() below it', async () => {
    const module = await Test.createTestingModule({ providers: [Transient] }).compile();
    expect(await module.resolve(Transient)).not.toBe(await module.resolve(Transient));
  });

  it('is not inherited: a subclass would be a second workflow with one name', () => {
    class Sub extends Quote {}
    expect(getWorkflowMetadata(Sub)).toBeUndefined();
    expect(getWorkflowMetadata(undefined)).toBeUndefined();
  });
});

describe('@Step()', () => {
  it('notes the options as they are; the application checks them at its start (R22)', () => {
    class Handlers {
      @Step({ queue: '', retry: { maxAttempts: -1 } }) charge(id: string): string {
        return id;
      }
    }
    expect(getHandlerMetadata(Handlers.prototype, 'charge')?.metadata).toEqual({
      kind: 'charge',
      nodeType: 'step',
      options: { queue: '', retry: { maxAttempts: -1 } },
      owner: 'Handlers.charge',
    });
  });

  it('refuses what is no object of options', () => {
    expect(() => Step(null as never)({}, 'charge', {})).toThrow('charge takes an object of options');
  });

  it('refuses a static method', () => {
    const declare = (): unknown => {
      class Handlers {
        @Step() static charge(id: string): string {
          return id;
        }
        refund(): void {}
      }
      return Handlers;
    };
    expect(declare).toThrow('@Step() on Handlers.charge must stand on a method of instances');
  });
});

describe('@OnStepEvent()', () => {
  it('refuses types in place of options, of which it would hear the first only (F34)', () => {
    const listen = OnStepEvent('reclaimed', 'discarded' as never);
    expect(() => listen({}, 'hear', {})).toThrow(
      "hear takes one type or one list of types: @OnStepEvent(['discarded',",
    );
  });
});
