-- Makes at most one run for each (workflow, key) (R7). p_ids as in cyclone_submit. Keys are taken in sorted order, so that batches with the
-- same keys never deadlock (C7). outcome: `created`; `exists`, whatever its state (same_input tells whether the hashes agree); `busy`, when
-- another transaction holds the key for longer than p_wait_ms (null: the lock_timeout of the session); `conflict`, when the caller's
-- transaction is too old to see the run that holds the key (REPEATABLE READ). No outcome aborts the caller's transaction (R6).
-- p_tokens: one of its own for each submit, which it keeps when its answer is lost and it is sent again: the run that bears it was made by
-- the first try, and so it is `created` for the second one too.
create or replace function cyclone_submit_once(
  p_ids bigint[],
  p_keys text[], p_hashes text[], p_tokens uuid[], p_wait_ms int,
  p_workflows text[], p_result_nodes text[], p_tags jsonb[], p_delays_ms bigint[], p_starts timestamptz[], p_deadlines_ms bigint[],
  p_run_index int[], p_nodes text[], p_node_types text[], p_kinds text[], p_queues text[], p_priorities int[],
  p_inputs jsonb[], p_input_specs jsonb[], p_open_deps int[], p_dependents int[], p_max_attempts int[], p_policies jsonb[],
  p_dep_index int[], p_dep_nodes text[], p_depends_on text[]
) returns table (run_index int, run_id bigint, outcome text, same_input boolean)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := cyclone_now();
  v_ids     bigint[] := array_fill(null::bigint, array[cardinality(p_keys)]);
  v_starts  timestamptz[] := array_fill(null::timestamptz, array[cardinality(p_keys)]);
  v_timeout text := current_setting('lock_timeout');
  v_run     record;
  v_found   record;
begin
  if p_wait_ms is not null then
    perform set_config('lock_timeout', p_wait_ms || 'ms', true);
  end if;

  for v_run in
    select w.*, n.nodes
      from unnest(p_keys, p_hashes, p_tokens, p_workflows, p_result_nodes, p_tags, p_delays_ms, p_starts, p_deadlines_ms)
             with ordinality w(once_key, once_hash, once_token, workflow, result_node, tags, delay_ms, starts_at, deadline_ms, i)
      join (select m.run_index, count(*)::int as nodes from unnest(p_run_index) m(run_index) group by m.run_index) n on n.run_index = w.i
     order by w.workflow collate "C", w.once_key collate "C", w.i
  loop
    run_index := v_run.i; run_id := null; outcome := null; same_input := null;
    v_starts[v_run.i] := coalesce(v_run.starts_at, v_now + coalesce(cyclone_ms(v_run.delay_ms), '0'));
    begin
      while outcome is null loop                     -- once more when the run that held the key was purged in between
        insert into cyclone_runs (id, workflow, open_steps, result_node, once_key, once_hash, once_token, tags, created_at, starts_at, deadline_ms,
                                  deadline_at)
        values (coalesce(p_ids[v_run.i], nextval('cyclone_runs_id_seq')), v_run.workflow, v_run.nodes, v_run.result_node, v_run.once_key,
                v_run.once_hash, v_run.once_token, v_run.tags, v_now, v_starts[v_run.i], v_run.deadline_ms,
                v_starts[v_run.i] + cyclone_ms(v_run.deadline_ms))
        on conflict (workflow, once_key) where once_key is not null do nothing
        returning id into run_id;
        if run_id is not null then
          v_ids[v_run.i] := run_id; outcome := 'created'; same_input := true;
        else
          select r.id, r.once_hash, r.once_token into v_found from cyclone_runs r where r.workflow = v_run.workflow and r.once_key = v_run.once_key;
          if found then
            run_id := v_found.id; outcome := case when v_found.once_token = v_run.once_token then 'created' else 'exists' end;
            same_input := v_found.once_hash is not distinct from v_run.once_hash;
          end if;
        end if;
      end loop;
    exception
      when lock_not_available then outcome := 'busy';
      when serialization_failure then outcome := 'conflict';
    end;
    return next;
  end loop;

  perform set_config('lock_timeout', v_timeout, true);
  perform cyclone_insert_nodes(v_now, v_ids, v_starts, p_run_index, p_nodes, p_node_types, p_kinds, p_queues, p_priorities, p_inputs, p_input_specs,
    p_open_deps, p_dependents, p_max_attempts, p_policies, p_dep_index, p_dep_nodes, p_depends_on);
end
$$;
