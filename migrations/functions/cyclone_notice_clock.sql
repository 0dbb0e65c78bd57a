-- Notices that the clock of the database was set back, and keeps due what was due before: without that it would wait until the clock has
-- caught up. Workers have been seen at most at the present, so one that was seen later tells it; each tick asks, before it says "last seen".
-- Answers by how many milliseconds in the tick that notices it, else null. 'clock_was' tells operators until the clock has caught up;
-- 'clock_is' is there while steps are left: they go p_limit in a call. Backoffs, delays and deadlines that ran at that time end later by as much.
create or replace function cyclone_notice_clock(p_now timestamptz, p_limit int) returns bigint
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
declare
  v_was     timestamptz;
  v_is      timestamptz;
  v_noticed bigint;
begin
  select max(w.last_seen_at) into v_was from cyclone_workers w;
  -- Two processes see the present a moment apart, never by two seconds. One judges; the others find it done at their next tick.
  if v_was > p_now + interval '2 seconds' and pg_try_advisory_xact_lock(hashtext('cyclone_notice_clock'), hashtext(current_schema())) then
    v_noticed := extract(epoch from v_was - p_now) * 1000;
    insert into cyclone_marks as m (name, at) values ('clock_was', v_was), ('clock_is', p_now)
      on conflict (name) do update set at = excluded.at;
    update cyclone_workers w set last_seen_at = p_now where w.last_seen_at > p_now;
    -- Of live workers these are renewed anyway; of dead ones they must expire. After a small jump a lease that was given since then may look
    -- as old, and must not be shortened: so leases stay, and those of dead workers end later by as much.
    update cyclone_steps s set lease_expiry = s.lease_expiry - (v_was - p_now)
      from (select l.run_id, l.node from cyclone_steps l
             where l.state = 'running' and l.lease_expiry >= v_was and v_was > p_now + interval '5 minutes' order by l.run_id, l.node for no key update skip locked) l
     where s.run_id = l.run_id and s.node = l.node;
  end if;

  select m.at into v_was from cyclone_marks m where m.name = 'clock_was';
  if not found then
    return null;
  end if;
  select m.at into v_is from cyclone_marks m where m.name = 'clock_is' for no key update skip locked;
  if found then
    -- In the order in which they were due.
    with late as materialized (
      select s.run_id, s.node from cyclone_steps s
       where s.state = 'available' and s.scheduled_at > v_is and s.scheduled_at <= v_was
       order by s.scheduled_at limit p_limit for no key update skip locked
    ), moved as (
      update cyclone_steps s set scheduled_at = s.scheduled_at - (v_was - v_is)
        from late where s.run_id = late.run_id and s.node = late.node
      returning 1
    )
    delete from cyclone_marks m where m.name = 'clock_is' and (select count(*) from moved) < p_limit;
  end if;
  delete from cyclone_marks m where m.name = 'clock_was' and m.at <= p_now and not exists (select from cyclone_marks i where i.name = 'clock_is');
  return v_noticed;
end
$$;
