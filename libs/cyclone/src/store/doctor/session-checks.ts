import { ok, type Check, type Finding } from './finding.js';

/** Can the sessions of this role write, and do their settings leave alone what is stored? */
export const checkSession: Check = async ({ query }) => {
  const [row] = await query(
    `select current_setting('transaction_read_only') as read_only, pg_is_in_recovery()::text as standby, current_setting('array_nulls') as array_nulls,
            current_setting('session_replication_role') as triggers`,
  );
  const findings: Finding[] = [];
  if (row?.standby === 'true') {
    findings.push({
      check: 'session',
      level: 'error',
      message: 'This server is a standby, which is read-only: nothing can be submitted, claimed or completed.',
      advice: 'Connect to the primary: after a failover by its new address, or with a host name that follows it.',
    });
  } else if (row?.read_only === 'on') {
    findings.push({
      check: 'session',
      level: 'error',
      message: 'Sessions of this role are read-only: nothing can be submitted, claimed or completed.',
      advice:
        'Reset default_transaction_read_only where it is set (ALTER SYSTEM, ALTER DATABASE or ALTER ROLE … RESET). Workers connect anew by themselves.',
    });
  }
  if (row?.array_nulls !== 'on' || row.triggers === 'replica') {
    findings.push({
      check: 'session',
      level: 'warning',
      message: `New sessions have array_nulls = ${String(row?.array_nulls)} and session_replication_role = ${String(row?.triggers)}: each call has to set them right, in two more round trips.`,
      advice: 'Reset them for the role and the database.',
    });
  }
  return findings.length > 0
    ? findings
    : ok('session', 'Sessions of this role can write, and have the settings that the engine needs.');
};

/** A role or database that has no connection left: whoever loses one of his gets no other. */
export const checkConnectionLimits: Check = async ({ query }) => {
  const rows = await query(
    `select format('role %s', r.rolname) as whose, r.rolconnlimit as most, count(*)::int as used
       from pg_roles r join pg_stat_activity a on a.usesysid = r.oid
      where r.rolconnlimit >= 0 and exists (
              select from pg_stat_activity c where c.usesysid = r.oid and c.datname = current_database() and c.application_name like 'cyclone%')
      group by r.rolname, r.rolconnlimit having count(*) >= r.rolconnlimit
     union all
     select format('database %s', d.datname), d.datconnlimit, count(*)::int
       from pg_database d join pg_stat_activity a on a.datid = d.oid
      where d.datname = current_database() and d.datconnlimit >= 0
      group by d.datname, d.datconnlimit having count(*) >= d.datconnlimit`,
  );
  return rows.map(({ whose, most, used }) => ({
    check: 'limits',
    level: 'error',
    message: `The ${String(whose)} has ${String(used)} connections, and may have ${String(most)}: workers get no more.`,
    advice:
      'Raise its CONNECTION LIMIT, or set a smaller poolSize. A worker needs its pool and two connections beside it, for renewals and notifications.',
  }));
};
