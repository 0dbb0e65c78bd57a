-- The state of a node whose dependencies have all completed (spec/transitions: "the kind of the step gives the state").
-- A fan-out node stays pending: its items are its open dependencies (R30).
create or replace function cyclone_ready_state(p_node_type text) returns text
language sql immutable parallel safe as $$
  select case p_node_type
    when 'timer'   then 'waiting_timer'
    when 'signal'  then 'waiting_signal'
    when 'child'   then 'waiting_child'
    when 'fan_out' then 'pending'
    else 'available'
  end
$$;
