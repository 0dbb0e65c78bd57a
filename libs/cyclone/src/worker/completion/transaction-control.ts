import type { TransactionProblem } from '../../model/errors/index.js';

const COMMIT = /^\s*(?:commit|end|prepare\s+transaction)\b/i;
const ROLLBACK = /^\s*(?:rollback|abort)\b(?!\s+(?:(?:work|transaction)\s+)?to\b)/i;

/**
 * Whether a statement would end the transaction that it runs in. It sees the usual forms before they do harm; the database
 * refuses to complete the step after the others (CY002).
 */
export function transactionControl(sql: unknown): TransactionProblem | undefined {
  if (typeof sql !== 'string') return undefined;
  if (COMMIT.test(sql)) return 'committed';
  return ROLLBACK.test(sql) ? 'rolled_back' : undefined;
}
