-- After a call whose answer was lost (C4): finds out what became of it. First it ends the session that made the call (p_session, its
-- application_name), because that one may still be committing. Then it reads, with locks. While that session lives, or somebody else has
-- locked one of the steps, the answer is `wait`: to wait here for steps of several runs, without the locks of the runs, could end in a
-- deadlock with a sweep. Else:
--   completed   a step of the lost call is terminal at our generation: it was ours
--   unsettled   it is still running for us: the completion did not happen
--   lease_lost  it is no longer ours
--   claimed     a step that runs for us and that we do not know: the lost call claimed it
create or replace function cyclone_adopt(
  p_owner text, p_session text, p_doubt_runs bigint[], p_doubt_nodes text[], p_doubt_generations int[],
  p_known_runs bigint[], p_known_nodes text[], p_known_generations int[]
) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_locked int;
  v_there  int;
begin
  perform pg_terminate_backend(a.pid, 1000) from pg_stat_activity a where a.application_name = p_session and a.pid <> pg_backend_pid();
  perform pg_stat_clear_snapshot();                  -- else the transaction goes on seeing the session that it has ended
  select count(*) into v_locked
    from (select 1 from unnest(p_doubt_runs, p_doubt_nodes) d(run_id, node) join cyclone_steps s on s.run_id = d.run_id and s.node = d.node
             for no key update of s skip locked) l;
  select count(*) into v_there
    from unnest(p_doubt_runs, p_doubt_nodes) d(run_id, node) join cyclone_steps s on s.run_id = d.run_id and s.node = d.node;
  if v_locked < v_there
     or exists (select 1 from pg_stat_activity a where a.application_name = p_session and a.pid <> pg_backend_pid()) then
    return query select 'wait', null::bigint, null::text, null::text, null::text, null::int, null::int,
                        null::text, null::int, null::bigint, null::jsonb, null::jsonb;
    return;
  end if;

  return query
    select case when s.state in ('completed', 'discarded', 'cancelled') and s.lease_generation = d.generation then 'completed'
                when s.state = 'running' and s.lease_owner = p_owner and s.lease_generation = d.generation then 'unsettled'
                else 'lease_lost' end,
           d.run_id, d.node, s.kind, s.queue, s.attempt, d.generation, s.node_type, null::int, null::bigint, null::jsonb,
           jsonb_build_object('state', s.state)
      from unnest(p_doubt_runs, p_doubt_nodes, p_doubt_generations) d(run_id, node, generation)
      left join cyclone_steps s on s.run_id = d.run_id and s.node = d.node;

  return query
    select 'claimed', s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, s.timeout_ms, s.input,
           case when s.backoff is not null then '{"backoff": true}'::jsonb end
      from cyclone_steps s
     where s.state = 'running' and s.lease_owner = p_owner
       and not exists (select 1 from unnest(p_known_runs, p_known_nodes, p_known_generations) k(run_id, node, generation)
                        where k.run_id = s.run_id and k.node = s.node and k.generation = s.lease_generation)
       and not exists (select 1 from unnest(p_doubt_runs, p_doubt_nodes, p_doubt_generations) k(run_id, node, generation)
                        where k.run_id = s.run_id and k.node = s.node and k.generation = s.lease_generation);
end
$$;
