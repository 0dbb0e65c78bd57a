import { listed } from '../../model/listed.js';
import { encodingProblem } from '../server-check.js';
import { checkGrants } from './rights-check.js';
import { ok, type Check, type Finding } from './finding.js';
import { checkConnectionLimits, checkSession } from './session-checks.js';

/** A transaction that is older holds back vacuum enough to be felt. */
const LONG_TRANSACTION_S = 300;
const CLOCK_TOLERANCE_MS = 2_000;

/**
 * READ COMMITTED has to be the default, for the server and for every database and role that may connect: at REPEATABLE READ the last
 * completion before a join does not see its sibling, and the run is stranded.
 */
export const checkIsolation: Check = async ({ query }) => {
  const wrong = await query(
    `select 'this session' as place, current_setting('default_transaction_isolation') as isolation
      where current_setting('default_transaction_isolation') <> 'read committed'
     union all
     select case when s.setdatabase = 0 then 'role ' || r.rolname
                 when s.setrole = 0 then 'database ' || current_database()
                 else 'role ' || r.rolname || ' in database ' || current_database() end, c.value
       from pg_db_role_setting s
       left join pg_roles r on r.oid = s.setrole
      cross join lateral (select split_part(e, '=', 2) as value from unnest(s.setconfig) e where e like 'default_transaction_isolation=%') c
      where s.setdatabase in (0, (select oid from pg_database where datname = current_database())) and c.value <> 'read committed'`,
  );
  if (wrong.length === 0) return ok('isolation', 'The default isolation is read committed.');
  return wrong.map(({ place, isolation }) => ({
    check: 'isolation',
    level: 'error',
    message: `The default isolation of ${place} is ${isolation}: runs will be stranded.`,
    advice: `Set default_transaction_isolation to 'read committed' there (ALTER SYSTEM, ALTER DATABASE or ALTER ROLE … RESET), then reconnect.`,
  }));
};

/** A text that the encoding lacks could not be stored. */
export const checkEncoding: Check = async ({ query }) => {
  const [row] = await query(`select current_setting('server_encoding') as encoding`);
  const problem = encodingProblem(String(row?.encoding));
  if (!problem) return ok('encoding', 'The database can store every text.');
  return [
    {
      check: 'encoding',
      level: 'error',
      message: `The encoding of the database is ${String(row?.encoding)}.`,
      advice: problem.message,
    },
  ];
};

/** Whatever holds an old snapshot keeps vacuum from removing finished work, and claims slow down. Autovacuum itself is let be. */
export const checkLongTransactions: Check = async ({ query }) => {
  const rows = await query(
    `select format('session %s (%s, %s, %s)', a.pid, a.usename, coalesce(nullif(a.application_name, ''), 'no application_name'), a.state) as who,
            extract(epoch from clock_timestamp() - a.xact_start)::bigint as seconds,
            format('select pg_terminate_backend(%s)', a.pid) as remedy
       from pg_stat_activity a
      where a.datname = current_database() and a.pid <> pg_backend_pid() and (a.backend_xmin is not null or a.backend_xid is not null)
        and a.backend_type <> 'autovacuum worker' and a.xact_start < clock_timestamp() - $1 * interval '1 second'
     union all
     select format('prepared transaction %L', p.gid), extract(epoch from clock_timestamp() - p.prepared)::bigint, format('rollback prepared %L', p.gid)
       from pg_prepared_xacts p
      where p.database = current_database() and p.prepared < clock_timestamp() - $1 * interval '1 second'`,
    [LONG_TRANSACTION_S],
  );
  if (rows.length === 0) return ok('transactions', 'No transaction holds back vacuum.');
  return rows.map(({ who, seconds, remedy }) => ({
    check: 'transactions',
    level: 'warning',
    message: `The ${who} has had a transaction open for ${seconds} s and holds back vacuum.`,
    advice: `End it where it comes from, or with: ${remedy}`,
  }));
};

/** Unused replication slots hold back vacuum like an old transaction. */
export const checkReplicationSlots: Check = async ({ query }) => {
  const rows = await query(
    `select s.slot_name from pg_replication_slots s where not s.active and (s.xmin is not null or s.catalog_xmin is not null)`,
  );
  if (rows.length === 0) return [];
  return [
    {
      check: 'transactions',
      level: 'warning',
      message: `Replication slots that nobody uses hold back vacuum: ${listed(rows.map((row) => row.slot_name))}.`,
      advice: 'Reconnect their consumers, or drop them with pg_drop_replication_slot.',
    },
  ];
};

/** Times are compared on the database's clock only, so a difference does no harm to runs; it confuses those who compare logs. */
export const checkClock: Check = async ({ query }) => {
  const before = Date.now();
  const [row] = await query(`select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms`);
  const after = Date.now();
  const difference = Number(row?.ms) - (before + after) / 2;
  const tolerance = CLOCK_TOLERANCE_MS + (after - before) / 2;
  if (Math.abs(difference) <= tolerance) return ok('clock', 'This machine and the database agree about the time.');
  return [
    {
      check: 'clock',
      level: 'warning',
      message: `The database's clock is ${(Math.abs(difference) / 1000).toFixed(1)} s ${difference > 0 ? 'ahead of' : 'behind'} this machine.`,
      advice: 'Runs are not affected: only the clock of the database counts. Synchronise both before you compare logs.',
    },
  ];
};

/** What is lost without the right to end sessions. */
const UNENDED =
  'the next attempt of a step waits for the transaction of the one before it, for 30 s when the host of that is gone, and for ever when its ' +
  'process was stopped.';

/** Whoever takes a lease away ends the transaction of the worker that had it (C3): a stopped worker would keep its locks for ever. */
const checkSignalling: Check = async ({ query }) => {
  const [row] = await query(
    `select has_function_privilege('pg_catalog.pg_terminate_backend(integer, bigint)', 'execute')::text as may_terminate,
            (select string_agg(distinct a.usename, ', ') from pg_stat_activity a
              where a.datname = current_database() and a.application_name like 'cyclone%' and a.usename <> current_user
                and not pg_has_role(current_user, a.usesysid, 'member') and not pg_has_role(current_user, 'pg_signal_backend', 'member')) as foreign_roles,
            current_user as role`,
  );
  const findings: Finding[] = [];
  const missing = (message: string, advice: string): void => {
    findings.push({ check: 'rights', level: 'error', message, advice });
  };
  const role = String(row?.role);
  if (row?.may_terminate !== 'true') {
    missing(
      `The role ${role} may not call pg_terminate_backend: ${UNENDED}`,
      `GRANT EXECUTE ON FUNCTION pg_terminate_backend(integer, bigint) TO ${role}`,
    );
  }
  if (row?.foreign_roles != null) {
    missing(
      `Workers are connected as ${row.foreign_roles}, whose sessions the role ${role} may not end: ${UNENDED}`,
      `Let all processes use one role, or GRANT pg_signal_backend TO ${role}.`,
    );
  }
  return findings;
};

export const serverChecks: readonly Check[] = [
  checkIsolation,
  checkEncoding,
  checkSession,
  checkConnectionLimits,
  checkLongTransactions,
  checkReplicationSlots,
  checkClock,
  checkSignalling,
  checkGrants,
];
