-- Notes where the first step of each queue stood when a search was slow: ten milliseconds or more, when one of a clean index takes less than
-- three. The note is good for a second, or for ten times as long as the search took. `cyclone.slow_claim_ms` is another threshold, for tests.
-- The arrays are those of a search in all of the queues; p_places counts from 1 in each queue.
create or replace function cyclone_note_claim_heads(
  p_begun timestamptz, p_kinds text[], p_queues text[], p_priorities int[], p_scheduled timestamptz[], p_places bigint[]
) returns void
language plpgsql volatile
as $$
declare
  v_took interval := clock_timestamp() - p_begun;
begin
  if v_took < coalesce(nullif(current_setting('cyclone.slow_claim_ms', true), ''), '10')::int * interval '1 ms' or p_queues is null then
    return;
  end if;
  perform set_config('cyclone.claim_heads', jsonb_build_object(
            'until', clock_timestamp() + greatest(interval '1 s', 10 * v_took),
            'kinds', to_jsonb(p_kinds),
            'heads', jsonb_object_agg(h.queue, jsonb_build_object('priority', h.priority, 'at', h.scheduled_at)))::text, false)
     from unnest(p_queues, p_priorities, p_scheduled, p_places) h(queue, priority, scheduled_at, place)
    where h.place = 1;
end
$$;
