import pg from 'pg';
import { RUN_STATES, STEP_STATES } from '../model/states.js';
import { isAllowed } from '../model/transitions.js';
import { createDatabase, type TestDatabase } from '../../../../test/support/postgres.js';
import { guardTriggerSql } from './guard-trigger.js';

describe('the guard trigger', () => {
  let database: TestDatabase;
  let client: pg.Client;

  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(`
      create table cyclone_steps (run_id bigint, node text, state text not null, lease_generation int not null default 0);
      create table cyclone_runs (id bigint, state text not null);
    `);
    await client.query(guardTriggerSql());
    await client.query(guardTriggerSql());
  });

  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  /** Whether the trigger lets a row go from one state to another; 'new' is an insert. */
  async function permits(table: 'cyclone_steps' | 'cyclone_runs', from: string, to: string): Promise<boolean> {
    await client.query('begin');
    try {
      if (from !== 'new') {
        await client.query(`set local session_replication_role = replica`);
        await client.query(`insert into ${table} (state) values ($1)`, [from]);
        await client.query(`set local session_replication_role = origin`);
        await client.query(`update ${table} set state = $1`, [to]);
      } else {
        await client.query(`insert into ${table} (state) values ($1)`, [to]);
      }
      return true;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && error.code === 'CYG01')) throw error;
      return false;
    } finally {
      await client.query('rollback');
    }
  }

  it.each([
    ['step', STEP_STATES],
    ['run', RUN_STATES],
  ] as const)(
    'permits exactly the transitions of a %s, and an update that leaves the state alone (R2)',
    async (entity, states) => {
      for (const from of ['new', ...states]) {
        for (const to of states) {
          const permitted = await permits(`cyclone_${entity}s`, from, to);
          expect(`${from} → ${to}: ${permitted}`).toBe(
            `${from} → ${to}: ${from === to || isAllowed(entity, from, to)}`,
          );
        }
      }
    },
  );

  it('refuses a lease generation that goes down (R12)', async () => {
    await client.query(`insert into cyclone_steps values (1, 'charge', 'available', 5)`);
    await client.query(`update cyclone_steps set lease_generation = 6`);
    await expect(client.query(`update cyclone_steps set lease_generation = 4`)).rejects.toThrow(
      'step 1/charge: lease_generation may not go down from 6 to 4',
    );
  });
});
