// Compiled, never run: what a listener gets, and the parameters that would lie about it (F34).
import {
  CycloneModule,
  OnStepEvent,
  RUN_EVENT_TYPES,
  STEP_EVENT_TYPES,
  type CycloneEvent,
  type RunEvent,
  type StepEvent,
} from 'nestjs-cyclone';

class Listeners {
  @OnStepEvent() steps(event: StepEvent): string {
    return event.kind;
  }
  @OnStepEvent() nothing(): void {}
  @OnStepEvent() any(event: CycloneEvent): void {
    void event;
  }
  @OnStepEvent(['discarded', 'timed_out']) some(event: { type: 'discarded' | 'timed_out' }): void {
    void event;
  }
  @OnStepEvent('run_failed', { cyclone: 'archive' }) one(event: RunEvent): void {
    void event;
  }
  @OnStepEvent(RUN_EVENT_TYPES) runs(event: RunEvent): void {
    void event;
  }
  @OnStepEvent([...STEP_EVENT_TYPES, ...RUN_EVENT_TYPES]) all(event: CycloneEvent): void {
    void event;
  }
  // @ts-expect-error events of runs have to be asked for
  @OnStepEvent() asksForNoRuns(event: RunEvent): void {
    void event;
  }
  // @ts-expect-error a run event has no kind
  @OnStepEvent(['discarded', 'run_failed']) both(event: StepEvent): void {
    void event;
  }
  // @ts-expect-error there is no such event
  @OnStepEvent('complete') misspelt(event: StepEvent): void {
    void event;
  }
  // @ts-expect-error several types are one list
  @OnStepEvent('discarded', 'timed_out') list(event: StepEvent): void {
    void event;
  }
}

CycloneModule.forRoot({ onStepEvent: (event) => event.kind.length });
CycloneModule.forRoot({ onStepEvent: (event: StepEvent) => event.kind });
// @ts-expect-error it hears of steps only
CycloneModule.forRoot({ onStepEvent: (event: RunEvent) => event.workflow });

void Listeners;
