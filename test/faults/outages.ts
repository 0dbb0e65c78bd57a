import { sleep } from '#cyclone/model/timer.js';
import type { SilentHost } from '../support/silent-host.js';
import { pgbouncerProgram, startPgbouncer } from '../support/pgbouncer.js';
import type { Application, ApplicationOptions } from './application.js';
import { ROLE, type Stage } from './stage.js';

/** Where an outage happens. */
export interface Scene {
  readonly stage: Stage;
  readonly application: Application;
  /** From the application to the server. */
  readonly way: SilentHost;
}

/** What goes wrong with a database, and what has to be seen of it. */
export interface Outage {
  readonly name: string;
  /** Whether `npm test` plays it; `npm run faults` plays all. */
  readonly quick?: boolean;
  /** The way is not the application's, but that of another host. */
  readonly elsewhere?: boolean;
  /** What it needs, before the application starts. */
  prepare?(stage: Stage): Promise<void>;
  /** Makes it happen; `stage.onEnd` says how it ends. */
  begin(scene: Scene): Promise<void>;
  /** Whether the application does its work throughout, so that there is nothing to be seen of it. */
  readonly harmless?: boolean;
  /** What the worker's health says about it. */
  readonly health?: RegExp;
  /** What the doctor finds, or why there is no connection for it. */
  readonly doctor?: RegExp;
  /** Options of the application. */
  readonly options?: ApplicationOptions;
  /** The application's URL, where that is not the server's. */
  url?(stage: Stage): Promise<string>;
  /** Resolves when it has lasted long enough. Default: until calls of the client or the operator have failed. */
  lasts?(scene: Scene): Promise<void>;
  /** Within which the next step has to complete when it is over, in ms, on a machine with nothing else to do. */
  readonly recoversWithinMs: number;
}

/** From now on sessions may only read, as after the demotion of a primary. */
export const makeReadOnly = async (stage: Stage): Promise<void> => {
  stage.onEnd(() => stage.onServer(`alter database ${stage.database} reset default_transaction_read_only`));
  await stage.onServer(`alter database ${stage.database} set default_transaction_read_only = on`);
  await stage.cut();
};

/** The role gets no connection. */
export const refuseRole = async (stage: Stage): Promise<void> => {
  stage.onEnd(() => stage.onServer(`alter role ${ROLE} connection limit -1`));
  await stage.onServer(`alter role ${ROLE} connection limit 0`);
  await stage.cut();
};

/** A setting of the role for sessions to come. */
const setForRole = async (stage: Stage, name: string, value: string): Promise<void> => {
  stage.onEnd(() => stage.onServer(`alter role ${ROLE} reset ${name}`));
  await stage.onServer(`alter role ${ROLE} set ${name} = '${value}'`);
  await stage.cut();
};

/** Until the server has done so to some statements. */
const untilLogged =
  (text: string) =>
  ({ stage }: Scene): Promise<void> =>
    stage.untilLogged(text, 3);

/** The first ledger steps stay in their transaction for long, without a statement. */
const dawdle = (stage: Stage, application: Application, forMs: number): void => {
  const before = application.inTransaction;
  let left = 6;
  application.inTransaction = async () => {
    if (left-- > 0) await sleep(forMs);
  };
  stage.onEnd(async () => void (application.inTransaction = before));
};

/** Somebody keeps all runs locked that are there. */
const lockRuns = async (stage: Stage): Promise<void> => {
  const holder = await stage.connect(stage.urlOf('postgres'));
  stage.onEnd(() => holder.end());
  await holder.query(
    'begin; select count(*) from (select from cyclone_runs where finished_at is null for no key update) r',
  );
};

/** The disk is full for what the application writes. */
export const fillDisk = async (stage: Stage): Promise<void> => {
  stage.onEnd(async () => {
    await stage.sql('drop function disk_is_full() cascade');
  });
  await stage.sql(
    `create function disk_is_full() returns trigger language plpgsql as $$
     begin
       raise exception 'could not extend file "base/5/16384": No space left on device' using errcode = '53100';
     end $$`,
    'create trigger disk_is_full before insert or update on ledger for each statement execute function disk_is_full()',
    'create trigger disk_is_full before insert or update on cyclone_steps for each statement execute function disk_is_full()',
  );
};

const restart = (mode: 'fast' | 'immediate'): Outage => ({
  name: `a restart (${mode})`,
  health: /no connection/,
  doctor: /no connection|terminat|starting up|shutting down/i,
  begin: async ({ stage }) => {
    stage.onEnd(() => stage.server.start());
    await stage.server.stop(mode);
  },
  recoversWithinMs: 6_000,
});

export const OUTAGES: readonly Outage[] = [
  {
    name: 'terminated backends',
    begin: async ({ stage }) => {
      for (let round = 0; round < 10; round++) {
        const before = await stage.completed();
        await stage.cut();
        await stage.untilTrue('the application goes on', async () => (await stage.completed()) > before);
      }
    },
    harmless: true,
    recoversWithinMs: 6_000,
  },
  restart('fast'),
  restart('immediate'),
  {
    name: 'a read-only phase',
    quick: true,
    health: /read-only/,
    doctor: /read-only/,
    begin: ({ stage }) => makeReadOnly(stage),
    recoversWithinMs: 10_000,
  },
  {
    name: 'too many connections of the role (53300)',
    health: /no connection/,
    doctor: /no connection|terminat|starting up|shutting down/i,
    begin: ({ stage }) => refuseRole(stage),
    recoversWithinMs: 10_000,
  },
  {
    name: 'too many connections of the server (53300)',
    health: /no connection/,
    doctor: /no connection|terminat|starting up|shutting down/i,
    begin: async ({ stage }) => {
      const others: { end(): Promise<void> }[] = [];
      stage.onEnd(async () => void (await Promise.all(others.map((other) => other.end()))));
      await stage.onServer(`create role crowd login`);
      // Whoever is faster gets the place of a session that is ended: until the application has none left.
      await stage.untilTrue('the crowd has all places', async () => {
        await stage.cut();
        for (;;) {
          const other = await stage.connect(stage.urlOf('crowd')).catch(() => undefined);
          if (!other) break;
          others.push(other);
        }
        const [row] = await stage.sql<{ n: number }>(
          `select count(*)::int as n from pg_stat_activity where usename = '${ROLE}'`,
        );
        return row?.n === 0;
      });
    },
    recoversWithinMs: 10_000,
  },
  {
    name: 'a full disk (53100)',
    quick: true,
    begin: ({ stage }) => fillDisk(stage),
    recoversWithinMs: 10_000,
  },
  {
    name: 'lock_timeout set on the role',
    begin: async ({ stage }) => {
      await setForRole(stage, 'lock_timeout', '100ms');
      await lockRuns(stage);
    },
    lasts: untilLogged('canceling statement due to lock timeout'),
    recoversWithinMs: 6_000,
  },
  {
    name: 'statement_timeout set on the role',
    begin: async ({ stage }) => {
      await setForRole(stage, 'statement_timeout', '1s');
      await lockRuns(stage);
    },
    lasts: untilLogged('canceling statement due to statement timeout'),
    recoversWithinMs: 6_000,
  },
  {
    name: 'idle_in_transaction_session_timeout set on the role',
    begin: async ({ stage, application }) => {
      await setForRole(stage, 'idle_in_transaction_session_timeout', '500ms');
      dawdle(stage, application, 1_500);
    },
    lasts: untilLogged('terminating connection due to idle-in-transaction timeout'),
    recoversWithinMs: 6_000,
  },
  {
    name: 'transaction_timeout set on the role',
    begin: async ({ stage, application }) => {
      await setForRole(stage, 'transaction_timeout', '500ms');
      dawdle(stage, application, 1_500);
    },
    lasts: untilLogged('terminating connection due to transaction timeout'),
    recoversWithinMs: 6_000,
  },
  {
    name: 'array_nulls off on the role',
    begin: ({ stage }) => setForRole(stage, 'array_nulls', 'off'),
    harmless: true,
    recoversWithinMs: 6_000,
  },
  {
    name: 'a failover to a standby',
    quick: true,
    health: /no connection/,
    doctor: /no connection|terminat|starting up|shutting down/i,
    prepare: async (stage) => {
      await stage.addStandby();
    },
    begin: async ({ stage, way }) => {
      stage.onEnd(async () => {
        await stage.promoteStandby();
        way.leadTo(stage.server.url);
      });
      await stage.server.stop('immediate');
    },
    recoversWithinMs: 10_000,
  },
  vanished('a host that vanishes, and a role that may end its sessions', ROLE),
  ...(pgbouncerIsThere()
    ? [
        behindPgbouncer('pgbouncer in transaction mode, with the options for it', {
          preparedStatements: false,
          listen: false,
        }),
        behindPgbouncer('pgbouncer in transaction mode, with default options', {}),
      ]
    : []),
];

function pgbouncerIsThere(): boolean {
  if (!pgbouncerProgram) {
    process.stderr.write(
      'Skipped, because pgbouncer is not installed (Debian: apt-get install pgbouncer): outages behind it\n',
    );
  }
  return pgbouncerProgram !== undefined;
}

/** The application comes through pgbouncer in transaction mode, which ends the sessions of the server behind it now and then. */
function behindPgbouncer(name: string, options: ApplicationOptions): Outage {
  return {
    name,
    harmless: true,
    options,
    url: async (stage) => {
      const pooler = await startPgbouncer(stage.urlOf(ROLE));
      stage.onClose(() => pooler.stop());
      return pooler.through(stage.urlOf(ROLE));
    },
    begin: async ({ stage }) => {
      for (let round = 0; round < 3; round++) {
        const before = await stage.completed();
        await stage.cut();
        await stage.untilTrue('the application goes on', async () => (await stage.completed()) > before + 5);
      }
    },
    recoversWithinMs: 6_000,
  };
}

/** Another host with a worker of the same application is gone in the midst of its transactions, and nobody hears of it. */
function vanished(name: string, role: string): Outage {
  return {
    name,
    elsewhere: true,
    begin: async ({ stage, way }) => {
      const lost = await stage.application(way.through(stage.urlOf(role)), { worker: { leaseTtl: 3_000 } });
      lost.inTransaction = () => new Promise(() => undefined);
      await lost.worker.start();
      await stage.until(`select count(*) >= 3 from cyclone_steps where lease_owner = '${lost.worker.id}'`);
      await stage.until(
        `select count(*) >= 3 from pg_stat_activity where usename = '${role}' and application_name like 'cyclone:%' and query like 'insert%'`,
      );
      way.vanish();
    },
    lasts: ({ stage }) => stage.until(`select bool_and(finished_at is not null) from cyclone_steps where reclaims > 0`),
    recoversWithinMs: 6_000,
  };
}
