-- Writes who did what, why, and to how many. Called in the transaction of the change itself, so that neither is there without the other.
-- Without an actor it names the role that is logged in to the database.
create or replace function cyclone_write_audit(
  p_actor text, p_action text, p_run bigint, p_node text, p_reason text, p_affected bigint, p_detail jsonb
) returns bigint
language plpgsql volatile
set search_path from current
as $$
declare
  v_id bigint;
begin
  insert into cyclone_audit (at, actor, action, run_id, node, reason, affected, detail)
  values (cyclone_now(), coalesce(p_actor, 'role ' || session_user), p_action, p_run, p_node, p_reason, p_affected, p_detail)
  returning id into v_id;
  return v_id;
end
$$;
