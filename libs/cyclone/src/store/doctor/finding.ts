import { RAW_TYPES } from '../raw-client.js';
import type { Query } from '../schema-status.js';
import type { Session } from '../session.js';

/** What one check of the doctor found. */
export interface Finding {
  /** Which check: `isolation`, `schema`, `functions`, … */
  readonly check: string;
  /** `ok`: nothing to do; `info`: worth knowing; `warning`: it will hurt; `error`: it does. */
  readonly level: 'ok' | 'info' | 'warning' | 'error';
  readonly message: string;
  /** What to do about it; null when there is nothing to do. */
  readonly advice: string | null;
}

/** What a check has to work with. Rows are objects of texts. */
export interface Patient {
  readonly query: Query;
  readonly schema: string;
}

export type Check = (patient: Patient) => Promise<Finding[]>;

export const ok = (check: string, message: string): Finding[] => [{ check, level: 'ok', message, advice: null }];

/** Rows of a session as objects of texts, for queries that are asked once in a while and by nobody in a hurry. */
export function queryOf(session: Session): Query {
  return async (text, values = []) => {
    const result = await session.client.query({ text, values, types: RAW_TYPES });
    return (result as unknown as { rows: Record<string, unknown>[] }).rows;
  };
}
