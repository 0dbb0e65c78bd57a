-- Dead letters (R24): discarded steps, newest first, from a keyset position on (p_before_*, null: from the newest).
-- p_reason: an error_kind; `retryable` also selects `timeout`; null selects every discard. p_since_ms: discarded no longer ago.
-- root_run_id is the run that a retry has to reopen: the run itself, or the uppermost ancestor of a child run (R31).
-- Bounded by the partial index on discarded steps: its kinds are walked by a loose scan, each from its newest end.
create or replace function cyclone_list_exhausted(
  p_kind text, p_reason text, p_fingerprint text, p_since_ms bigint, p_limit int, p_before_at timestamptz, p_before_run bigint, p_before_node text
) returns table (
  run_id bigint, node text, kind text, queue text, error text, error_kind text, error_fingerprint text, attempts int, max_attempts int,
  discarded_at timestamptz, contained boolean, workflow text, run_state text, root_run_id bigint, root_state text
)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_since timestamptz := coalesce(cyclone_now() - cyclone_ms(p_since_ms), '-infinity');
  v_until timestamptz := coalesce(p_before_at, 'infinity');
  v_kinds text[] := case p_reason when 'retryable' then '{retryable,timeout}' else array[p_reason] end;
begin
  return query
  with recursive kinds as (
    (select s.kind from cyclone_steps s where s.state = 'discarded' and s.kind >= coalesce(p_kind, '') order by s.kind limit 1)
    union all
    select (select s.kind from cyclone_steps s where s.state = 'discarded' and s.kind > k.kind order by s.kind limit 1)
      from kinds k
     where p_kind is null and k.kind is not null
  ), dead as (
    select s.run_id, s.node, s.kind, s.finished_at
      from kinds k
     cross join lateral (
       select t.run_id, t.node, t.kind, t.finished_at from cyclone_steps t
        where t.state = 'discarded' and t.kind = k.kind and t.finished_at between v_since and v_until
          and (p_reason is null or t.error_kind = any(v_kinds))
          and (p_fingerprint is null or t.error_fingerprint = p_fingerprint)
          and (p_before_at is null or (t.finished_at, t.run_id, t.node) < (p_before_at, p_before_run, p_before_node))
        order by t.finished_at desc, t.run_id desc, t.node desc
        limit p_limit
     ) s
     where p_kind is null or k.kind = p_kind
     order by s.finished_at desc, s.run_id desc, s.node desc
     limit p_limit
  )
  select s.run_id, s.node, s.kind, s.queue, s.error, s.error_kind, s.error_fingerprint, s.attempt, s.max_attempts, s.finished_at, s.contained,
         r.workflow, r.state, coalesce(root.id, r.id), coalesce(root.state, r.state)
    from dead d
    join cyclone_steps s on s.run_id = d.run_id and s.node = d.node
    join cyclone_runs r on r.id = d.run_id
    left join lateral (
      with recursive up as (
        select p.id, p.parent_run_id, p.state from cyclone_runs p where p.id = r.parent_run_id
        union all
        select p.id, p.parent_run_id, p.state from up u join cyclone_runs p on p.id = u.parent_run_id
      )
      select u.id, u.state from up u order by u.id limit 1
    ) root on r.parent_run_id is not null
   order by d.finished_at desc, d.run_id desc, d.node desc;
end
$$;
