// Compiled, never run: a change of many runs says that it is none of a dry run, and what it is about.
import type { OperatorClient } from 'nestjs-cyclone';

declare const operator: OperatorClient;
declare const asked: boolean;

void operator.retryExhausted({}, { dryRun: true });
void operator.retryExhausted({ kind: 'mail' }, { dryRun: false, additionalAttempts: 3 });
void operator.retryExhausted({ since: '1h', limit: 5 }, { dryRun: asked });
void operator.retryExhausted({ all: true }, { dryRun: false });
// @ts-expect-error F3 whether it changes anything has to be said
void operator.retryExhausted({ kind: 'mail' }, {});
// @ts-expect-error F3 a change without a filter says that it means all
void operator.retryExhausted({}, { dryRun: false });
// @ts-expect-error F3 a limit is no filter
void operator.retryExhausted({ limit: 5 }, { dryRun: false });
// @ts-expect-error F3 a misspelt filter
void operator.retryExhausted({ kinds: 'mail' }, { dryRun: true });

void operator.purgeTerminalRuns({ dryRun: true });
void operator.purgeTerminalRuns({ olderThan: '30d', dryRun: asked });
void operator.purgeTerminalRuns({ defaultAge: '30d', dryRun: false });
void operator.purgeTerminalRuns({ all: true, dryRun: false });
// @ts-expect-error F3 whether it changes anything has to be said
void operator.purgeTerminalRuns({ olderThan: '30d' });
// @ts-expect-error F3 a change without an age says that it means all
void operator.purgeTerminalRuns({ dryRun: false });

void operator.repairStrandedRuns({ dryRun: true });
void operator.repairStrandedRuns({ all: true, dryRun: false });
// @ts-expect-error F3 whether it changes anything has to be said
void operator.repairStrandedRuns({ all: true });
// @ts-expect-error F3 a repair has no filter, so it says that it means all
void operator.repairStrandedRuns({ dryRun: false });
