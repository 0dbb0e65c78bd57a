import {
  ERROR_KINDS,
  RUN_STATES,
  STEP_STATES,
  type ErrorKind,
  type RunState,
  type StepState,
} from '../../model/states.js';
import type { Duration } from '../../model/duration.js';
import {
  aCursor,
  aDuration,
  aFlag,
  aList,
  anyOf,
  aReason,
  aRunId,
  aTag,
  aText,
  aTime,
  aWhole,
  digits,
  Field,
} from '../field.js';

const LARGEST_PAGE = 200;

class PageQuery {
  @Field(digits(aWhole(1, LARGEST_PAGE)), 'Rows of the page.', { defaultsTo: 50 })
  limit = 50;

  @Field(aCursor, 'next_cursor of the page before; with the same filters.')
  cursor?: string;
}

export class RunsFilterQuery {
  @Field(aList(anyOf(RUN_STATES)), 'One of these states; may be given several times.')
  state?: RunState[];

  @Field(aList(aText), 'One of these workflows; may be given several times.')
  workflow?: string[];

  @Field(aList(aTag), 'Has this tag, as name:value; given several times, all of them.')
  tag?: string[];

  @Field(aText, 'Was submitted once with this key.')
  key?: string;

  @Field(aRunId, 'Is a child of this run.')
  parent?: string;

  @Field(aTime, 'Created at this time or later.')
  created_from?: string;

  @Field(aTime, 'Created before this time.')
  created_to?: string;
}

export class RunsQuery extends RunsFilterQuery {
  @Field(anyOf(['desc', 'asc']), 'By id, which is the order of submission.', { defaultsTo: 'desc' })
  direction: 'desc' | 'asc' = 'desc';

  @Field(digits(aWhole(1, LARGEST_PAGE)), 'Rows of the page.', { defaultsTo: 50 })
  limit = 50;

  @Field(aCursor, 'next_cursor or previous_cursor of another page; with the same filters.')
  cursor?: string;
}

export class StepsQuery extends PageQuery {
  @Field(aList(anyOf(STEP_STATES)), 'One of these states; may be given several times.')
  state?: StepState[];

  @Field(aText, 'Is an item of this fan-out node.')
  parent_node?: string;
}

export class PayloadQuery {
  @Field(anyOf(['true', 'false']), 'true: values longer than 64 KiB too.', { defaultsTo: 'false' })
  full: 'true' | 'false' = 'false';
}

export class AttemptsQuery {
  @Field(digits(aWhole(1, LARGEST_PAGE)), 'The latest so many.', { defaultsTo: 50 })
  limit = 50;
}

export class DeadLetterGroupsQuery {
  @Field(aText, 'Of this kind.')
  kind?: string;

  @Field(aDuration, 'Discarded no longer ago.')
  since?: Duration;
}

export class DeadLettersQuery extends PageQuery {
  @Field(aText, 'Of this kind.')
  kind?: string;

  @Field(anyOf(ERROR_KINDS), 'retryable includes timeout.')
  error_kind?: ErrorKind;

  @Field(aText, 'Of one cause, as the groups tell them apart.')
  fingerprint?: string;

  @Field(aDuration, 'Discarded no longer ago.')
  since?: Duration;
}

export class StrandedQuery extends PageQuery {}

export class AuditQuery extends PageQuery {
  @Field(aRunId, 'About this run.')
  run_id?: string;

  @Field(aText, 'cancel, pause, resume, retry, retry_all, repair, purge.')
  action?: string;

  @Field(aText, 'By this caller.')
  actor?: string;
}

export class ChangeBody {
  @Field(aReason, 'Why; goes into the audit.')
  reason?: string;
}

export class RetryBody extends ChangeBody {
  @Field(aWhole(0, 1_000_000), 'Executions to grant beyond those that are left; a reopened node always gets one.', {
    defaultsTo: 0,
  })
  additional_attempts = 0;
}

export class RetryDeadLettersBody extends RetryBody {
  @Field(aText, 'Of this kind.')
  kind?: string;

  @Field(anyOf(ERROR_KINDS), 'retryable includes timeout.')
  error_kind?: ErrorKind;

  @Field(aText, 'Of one cause, as the groups tell them apart.')
  fingerprint?: string;

  @Field(aDuration, 'Discarded no longer ago.')
  since?: Duration;

  @Field(aWhole(1, 10_000), 'Dead letters to look at, the newest first.', { defaultsTo: 1_000 })
  limit = 1_000;

  @Field(aFlag, 'Only counts the runs that it would reopen. false reopens them.', { defaultsTo: true })
  dry_run = true;

  @Field(aFlag, 'Must be true for a change without kind, error_kind, fingerprint and since.', { defaultsTo: false })
  all = false;
}

export class RepairBody extends ChangeBody {
  @Field(aWhole(1, 10_000), 'Runs to look for at a time.', { defaultsTo: 100 })
  batch = 100;

  @Field(aFlag, 'Only says what it would mend. false mends it.', { defaultsTo: true })
  dry_run = true;

  @Field(aFlag, 'Must be true for a change: a repair has no filter.', { defaultsTo: false })
  all = false;
}

export class PurgeBody extends ChangeBody {
  @Field(aDuration, 'Age since the end of a run, longer than 0.', { required: true })
  older_than!: Duration;

  @Field(aWhole(1, 100_000), 'Runs to delete at most.', { defaultsTo: 10_000 })
  limit = 10_000;

  @Field(aFlag, 'Only counts the runs that it would delete. false deletes them.', { defaultsTo: true })
  dry_run = true;
}
