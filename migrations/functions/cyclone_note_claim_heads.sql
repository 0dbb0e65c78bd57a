-- Notes where the first step of each queue stood when a search had to walk over too many index entries. Entries are counted, not time, so
-- that a busy machine changes no order. The note is good for a second, or for ten times as long as the search took.
-- p_entries: how many beyond the 20,000 that cost nothing worth a note; those that a search in so many kinds can use do not count either.
-- The arrays are those of a search in all of the queues; p_places counts from 1 in each.
create or replace function cyclone_note_claim_heads(
  p_begun timestamptz, p_entries bigint, p_slots int[], p_kinds text[], p_queues text[], p_priorities int[], p_scheduled timestamptz[], p_places bigint[]
) returns void
language plpgsql volatile
as $$
begin
  if p_queues is null or p_entries < 2 * cardinality(p_kinds) * (select coalesce(sum(s.n), 0) from unnest(p_slots) s(n)) then
    return;
  end if;
  perform set_config('cyclone.claim_heads', jsonb_build_object(
            'until', clock_timestamp() + greatest(interval '1 s', 10 * (clock_timestamp() - p_begun)),
            'kinds', to_jsonb(p_kinds),
            'heads', jsonb_object_agg(h.queue, jsonb_build_object('priority', h.priority, 'at', h.scheduled_at)))::text, false)
     from unnest(p_queues, p_priorities, p_scheduled, p_places) h(queue, priority, scheduled_at, place)
    where h.place = 1;
end
$$;
