-- Promotes every pending node of a running run whose dependencies have all completed. It recounts from the edges and the states
-- and trusts no counter (R24); resume, retry and repair use it. The hot path counts down instead (cyclone_advance).
-- The caller holds the run's lock.
create or replace function promote_ready_steps(p_run bigint) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now       timestamptz := cyclone_now();
  v_row       record;
  v_node      text;
  v_too_large text[] := '{}';
begin
  for v_row in
    with counted as (
      select s.node, count(d.depends_on) filter (where u.state is distinct from 'completed')::int as open_deps
        from cyclone_steps s
        left join cyclone_deps d on d.run_id = s.run_id and d.node = s.node
        left join cyclone_steps u on u.run_id = d.run_id and u.node = d.depends_on
       where s.run_id = p_run and s.state = 'pending' and s.node_type <> 'item'
       group by s.node
    ), resolved as materialized (
      select s.node, c.open_deps, s.input_spec is not null as computed,
             case when c.open_deps = 0 and s.input_spec is not null then cyclone_resolve_input(p_run, s.input_spec) else s.input end as input
        from counted c join cyclone_steps s on s.run_id = p_run and s.node = c.node
    )
    update cyclone_steps s
       set open_deps = r.open_deps, input = r.input,
           state = case when r.open_deps = 0 and not (r.computed and r.input is null) then cyclone_ready_state(s.node_type) else s.state end,
           available_at = case when r.open_deps = 0 then v_now else s.available_at end,
           wake_at = case when r.open_deps = 0 and s.wait_ms is not null then v_now + cyclone_ms(s.wait_ms) else s.wake_at end
      from resolved r
     where s.run_id = p_run and s.node = r.node and s.state = 'pending'
       and (r.open_deps = 0 or s.open_deps <> r.open_deps)
    returning s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, s.state,
              r.open_deps = 0 and r.computed and r.input is null as too_large
  loop
    if v_row.too_large then
      v_too_large := v_too_large || v_row.node;
    elsif v_row.state <> 'pending' then
      event := case v_row.state when 'available' then 'promoted' else 'waiting' end;
      run_id := v_row.run_id; node := v_row.node; kind := v_row.kind; queue := v_row.queue; attempt := v_row.attempt;
      generation := v_row.lease_generation; node_type := v_row.node_type; max_attempts := v_row.max_attempts;
      timeout_ms := null; input := null; info := null;
      return next;
    end if;
  end loop;
  foreach v_node in array v_too_large loop
    return query select * from cyclone_discard_step(v_now, p_run, v_node, 'the resolved input is larger than 64 MiB', 'permanent', null, null);
  end loop;
end
$$;
