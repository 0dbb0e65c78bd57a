import { PROBLEM_SCHEMA } from '../problem.js';
import type { Schema } from '../schema.js';
import {
  AUDIT_ENTRY,
  DEAD_LETTER,
  DEAD_LETTER_GROUP,
  FINDING,
  KIND,
  STATS,
  STRANDED_RUN,
  WORKER,
} from './operations.js';
import { RUN } from './run.js';
import { ATTEMPT, EXPLANATION, STEP, STEP_PAYLOAD } from './step.js';

/** What answers refer to by name. */
export const COMPONENTS: Readonly<Record<string, Schema>> = {
  Run: RUN,
  Step: STEP,
  StepPayload: STEP_PAYLOAD,
  Attempt: ATTEMPT,
  Explanation: EXPLANATION,
  DeadLetter: DEAD_LETTER,
  DeadLetterGroup: DEAD_LETTER_GROUP,
  Kind: KIND,
  Worker: WORKER,
  Stats: STATS,
  StrandedRun: STRANDED_RUN,
  Finding: FINDING,
  AuditEntry: AUDIT_ENTRY,
  Problem: PROBLEM_SCHEMA,
};
