-- What became of a transaction whose commit was not answered (C4): committed, aborted or in progress. With a lease: of the one that was to
-- complete this step. Its row says so then, because after a crash or a failover the id may belong to another transaction, or to none yet.
create or replace function cyclone_transaction_status(p_xid text, p_run bigint, p_node text, p_generation int) returns text
language plpgsql volatile
set search_path from current
as $$
declare
  v_status text;
  v_done   boolean;
begin
  begin
    v_status := coalesce(pg_xact_status(p_xid::xid8), 'aborted');
  exception when invalid_parameter_value then
    v_status := 'aborted';                           -- an id of the future: what it was given to is not known here
  end;
  if p_run is null or v_status = 'in progress' then
    return v_status;
  end if;
  select s.state = 'completed' and s.lease_generation = p_generation into v_done
    from cyclone_steps s where s.run_id = p_run and s.node = p_node;
  return case when v_done is null then v_status when v_done then 'committed' else 'aborted' end;
end
$$;
