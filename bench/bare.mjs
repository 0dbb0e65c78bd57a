// The yardstick: the least that a durable queue with run and step history can do, written by hand. It is no engine.
import pg from 'pg';

const SCHEMA = `
drop schema if exists bare cascade;
create schema bare;
create table bare.runs (id bigint primary key, state text not null default 'running', open_steps int not null, finished_at timestamptz)
  with (fillfactor = 45);
create table bare.steps (run_id bigint, node text collate "C", state text collate "C" not null, open_deps int not null, input jsonb, output jsonb,
  lease_owner text, lease_expiry timestamptz, lease_generation int not null default 0, started_at timestamptz, finished_at timestamptz,
  primary key (run_id, node)) with (fillfactor = 60);
create table bare.deps (run_id bigint, depends_on text collate "C", node text collate "C", primary key (run_id, depends_on, node));
create index on bare.steps (run_id) where state = 'available';
create table bare.ledger (run_id bigint, node text, amount numeric);

create function bare.flush(p_owner text, p_runs bigint[], p_nodes text[], p_outputs jsonb[], p_limit int)
returns table (run_id bigint, node text, input jsonb) language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  if cardinality(p_runs) > 0 then
    perform 1 from bare.runs where id = any(p_runs) order by id for no key update;
    update bare.steps s set state = 'completed', output = c.output, finished_at = now(), lease_owner = null, lease_expiry = null
      from unnest(p_runs, p_nodes, p_outputs) c(run_id, node, output)
     where s.run_id = c.run_id and s.node = c.node and s.lease_owner = p_owner;
    update bare.steps s set open_deps = s.open_deps - 1, state = case when s.open_deps = 1 then 'available' else s.state end, input = c.output
      from unnest(p_runs, p_nodes, p_outputs) c(run_id, node, output) join bare.deps d on d.run_id = c.run_id and d.depends_on = c.node
     where s.run_id = d.run_id and s.node = d.node;
    update bare.runs r set open_steps = r.open_steps - d.n, state = case when r.open_steps = d.n then 'completed' else r.state end,
           finished_at = case when r.open_steps = d.n then now() end
      from (select u.id, count(*)::int as n from unnest(p_runs) u(id) group by u.id) d where r.id = d.id;
  end if;
  return query
    with picked as materialized (
      select s.run_id, s.node from bare.steps s where s.state = 'available' order by s.run_id limit p_limit for no key update skip locked
    )
    update bare.steps s set state = 'running', lease_owner = p_owner, lease_expiry = now() + interval '30 s',
           lease_generation = s.lease_generation + 1, started_at = now()
      from picked p where s.run_id = p.run_id and s.node = p.node
    returning s.run_id, s.node, s.input;
end $$;`;

const FLUSH = { name: 'bare_flush', text: 'select * from bare.flush($1, $2, $3, $4, $5)' };
const BATCH = 200;
const LANES = 2;
const LEDGER_CONNECTIONS = 16;

/** Steps per second of one workload on the bare queue. */
export async function measureBare(url, workload, runs) {
  const open = async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return client;
  };
  const owner = await open();
  await owner.query(SCHEMA);
  const nodes = workload === 'chain' ? ['a', 'b', 'c'] : ['a'];
  await owner.query(`insert into bare.runs (id, open_steps) select g, $2 from generate_series(1, $1) g`, [
    runs,
    nodes.length,
  ]);
  await owner.query(
    `insert into bare.steps (run_id, node, state, open_deps, input)
     select g, n, case when i = 1 then 'available' else 'pending' end, case when i = 1 then 0 else 1 end, '{"value": 1}'
       from generate_series(1, $1) g, unnest($2::text[]) with ordinality u(n, i)`,
    [runs, nodes],
  );
  await owner.query(
    `insert into bare.deps select g, d[1], d[2] from generate_series(1, $1) g, (values (array['a', 'b']), (array['b', 'c'])) v(d) where $2`,
    [runs, workload === 'chain'],
  );
  await owner.query('vacuum analyze bare.steps, bare.runs, bare.deps');
  const total = runs * nodes.length;
  let finished = 0;
  const started = performance.now();
  if (workload === 'ledger') await drainLedger(open, (n) => (finished += n));
  else {
    await Promise.all(
      Array.from({ length: LANES }, async (_, lane) => {
        const client = await open();
        let rows = [];
        while (finished < total) {
          const done = rows;
          ({ rows } = await client.query({
            ...FLUSH,
            values: [
              `lane${lane}`,
              done.map((r) => r.run_id),
              done.map((r) => r.node),
              done.map(() => '{"value": 1}'),
              BATCH,
            ],
          }));
          finished += done.length;
          if (done.length + rows.length === 0) break;
        }
        await client.end();
      }),
    );
  }
  const seconds = (performance.now() - started) / 1000;
  await owner.query('drop schema bare cascade');
  await owner.end();
  if (finished !== total) throw new Error(`the bare queue finished ${finished} of ${total} steps`);
  return total / seconds;
}

/** Sixteen connections, each with a transaction for every step: begin, insert, completion, commit. */
async function drainLedger(open, count) {
  const claimer = await open();
  const ready = [];
  let claiming;
  const claim = () =>
    (claiming ??= claimer.query({ ...FLUSH, values: ['ledger', [], [], [], 64] }).then(({ rows }) => {
      ready.push(...rows);
      claiming = undefined;
      return rows.length;
    }));
  await Promise.all(
    Array.from({ length: LEDGER_CONNECTIONS }, async () => {
      const client = await open();
      for (;;) {
        while (ready.length === 0) if ((await claim()) === 0 && ready.length === 0) return client.end();
        const step = ready.shift();
        await client.query('begin');
        await client.query({
          name: 'ledger',
          text: 'insert into bare.ledger values ($1, $2, 1.5)',
          values: [step.run_id, step.node],
        });
        await client.query({ ...FLUSH, values: ['ledger', [step.run_id], [step.node], ['null'], 0] });
        await client.query('commit');
        count(1);
      }
    }),
  );
  await claimer.end();
}
