-- The nodes downstream of the given ones, transitively.
create or replace function cyclone_downstream(p_run bigint, p_nodes text[]) returns table (node text)
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
  with recursive reach as (
    select d.node from cyclone_deps d where d.run_id = p_run and d.depends_on = any(p_nodes)
    union
    select d.node from reach r join cyclone_deps d on d.run_id = p_run and d.depends_on = r.node
  )
  select r.node from reach r;
end
$$;
