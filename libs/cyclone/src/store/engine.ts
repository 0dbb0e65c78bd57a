import type { Duration } from '../model/duration.js';
import type { PayloadSealer } from '../model/payload-codec.js';
import { CompletionStore } from './completion-store.js';
import type { Connections } from './connections.js';
import { DeadLetterStore } from './dead-letter-store.js';
import { EngineStore } from './engine-store.js';
import { EventHub } from './event-hub.js';
import { InspectionStore } from './inspection-store.js';
import { Notifier } from './notifier.js';
import { OperationsStore } from './operations-store.js';
import { RunStore } from './run-store.js';
import { SubmitStore } from './submit-store.js';

/** What the module says and several parts of an engine need. */
export interface EngineSettings {
  /** Applies the codec to payloads (R38). */
  readonly payloads?: PayloadSealer | undefined;
  /** The retention of steps that have none (R35). @default for ever */
  readonly defaultAge?: Duration | undefined;
}

/** Everything of one Cyclone that talks to the database, for one schema of one DataSource, and what its parts share. */
export class Engine {
  readonly store: EngineStore;
  readonly submits: SubmitStore;
  readonly completions: CompletionStore;
  readonly runs: RunStore;
  readonly operations: OperationsStore;
  readonly deadLetters: DeadLetterStore;
  readonly inspection: InspectionStore;
  readonly events: EventHub;
  readonly notifier: Notifier;

  /** @param onProblem told of what went wrong on the side and harms nothing: a listener that threw, a notification not sent */
  constructor(
    readonly connections: Connections,
    readonly schema: string,
    onProblem: (what: string, error: unknown) => void,
    readonly settings: EngineSettings = {},
  ) {
    this.events = new EventHub((error) => onProblem('An event listener failed', error));
    this.notifier = new Notifier(connections, schema, (error) =>
      onProblem('Other processes could not be notified', error),
    );
    this.store = new EngineStore(schema);
    this.submits = new SubmitStore(schema);
    this.completions = new CompletionStore(schema);
    this.runs = new RunStore(schema);
    this.operations = new OperationsStore(schema);
    this.deadLetters = new DeadLetterStore(schema);
    this.inspection = new InspectionStore(schema);
  }
}
