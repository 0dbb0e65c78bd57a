-- Makes a node's input of upstream outputs (R4): {"f": node} an output, {"f": node, "k": [key, ...]} what lies below these keys of it,
-- {"o": {...}} an object, {"a": [...]} an array, {"l": value} a literal. A missing key is left out of an object and is null alone.
-- Answers SQL null when the result would be larger than 64 MiB (R36), so that the caller discards the node.
-- It runs inside functions that have pinned search_path and the planner settings, once for each promoted node.
create or replace function cyclone_resolve_input(p_run bigint, p_spec jsonb) returns jsonb
language plpgsql stable as $$
declare
  v_limit  constant bigint := 67108864;
  v_result jsonb;
  v_size   bigint := 0;
  v_part   jsonb;
  v_keys   text[] := '{}';
  v_parts  jsonb[] := '{}';
  v_entry  record;
begin
  if p_spec ? 'f' then
    select case when p_spec ? 'k' then cyclone_below(s.output, p_spec -> 'k') else s.output end into v_result
      from cyclone_steps s where s.run_id = p_run and s.node = p_spec ->> 'f';
    return coalesce(v_result, 'null'::jsonb);
  elsif p_spec ? 'o' then
    for v_entry in select e.key, e.value from jsonb_each(p_spec -> 'o') e loop
      if v_entry.value ? 'k' then
        select cyclone_below(s.output, v_entry.value -> 'k') into v_part
          from cyclone_steps s where s.run_id = p_run and s.node = v_entry.value ->> 'f';
        continue when v_part is null;
      else
        v_part := cyclone_resolve_input(p_run, v_entry.value);
      end if;
      v_size := v_size + octet_length(v_part::text);
      if v_part is null or v_size > v_limit then
        return null;
      end if;
      v_keys := v_keys || v_entry.key;
      v_parts := v_parts || v_part;
    end loop;
    select jsonb_object_agg(e.key, e.part) into v_result from unnest(v_keys, v_parts) e(key, part);
    return coalesce(v_result, '{}'::jsonb);
  elsif p_spec ? 'a' then
    for v_entry in select e.value from jsonb_array_elements(p_spec -> 'a') with ordinality e(value, i) order by i loop
      v_part := cyclone_resolve_input(p_run, v_entry.value);
      v_size := v_size + octet_length(v_part::text);
      if v_part is null or v_size > v_limit then
        return null;
      end if;
      v_parts := v_parts || v_part;
    end loop;
    return to_jsonb(v_parts);
  end if;
  return p_spec -> 'l';
end
$$;
