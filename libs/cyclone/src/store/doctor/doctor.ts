import { isAnswer } from '../database-fault.js';
import type { InspectionStore } from '../inspection-store.js';
import type { OperationsStore } from '../operations-store.js';
import type { Session } from '../session.js';
import { queryOf, type Finding, type Patient } from './finding.js';
import { checkVersion, schemaChecks } from './schema-checks.js';
import { serverChecks } from './server-checks.js';
import { workChecks } from './work-checks.js';

export type { Finding } from './finding.js';

/**
 * Examines a Cyclone: the server, the schema and the work in it, and says about each finding what to do. Changes nothing.
 * Each check stands alone: one that fails is a finding by itself.
 *
 * @param session on a connection with the role of the workers, outside a transaction
 */
export async function examine(
  session: Session,
  schema: string,
  inspection: InspectionStore,
  operations: OperationsStore,
): Promise<Finding[]> {
  const patient: Patient = { query: queryOf(session), schema };
  const findings: Finding[] = [];
  const note = async (check: string, work: () => Promise<Finding[]>): Promise<void> => {
    try {
      findings.push(...(await work()));
    } catch (error) {
      if (!isAnswer(error)) throw error;
      findings.push({
        check,
        level: 'error',
        message: `This could not be checked: ${(error as Error).message}`,
        advice: 'Look whether the role may read the tables and catalogs, and whether the schema is complete.',
      });
    }
  };

  for (const check of serverChecks) await note('server', () => check(patient));
  await note('schema', () => checkVersion(patient));
  if (findings.some(({ check, level }) => check === 'schema' && level === 'error')) return findings;
  for (const check of schemaChecks) await note('schema', () => check(patient));
  for (const check of workChecks) await note('work', () => check({ session, inspection, operations }));
  return findings;
}
