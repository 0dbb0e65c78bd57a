-- Says that a worker drains (it claims nothing more), or forgets it when it has ended in order.
create or replace function cyclone_retire_worker(p_id text, p_gone boolean) returns void
language plpgsql volatile
set search_path from current
as $$
begin
  if p_gone then
    delete from cyclone_workers where id = p_id;
  else
    update cyclone_workers set draining = true where id = p_id;
  end if;
end
$$;
