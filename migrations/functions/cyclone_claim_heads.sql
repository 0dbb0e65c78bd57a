-- Where a search for claimable steps may begin in each queue, as {queue: {priority, at}}; null where it has to look everywhere.
--
-- While an old transaction holds back vacuum, the index entries of all that was claimed since then stay at the head of their range, and
-- every search would walk over them (DESIGN 8). A search that walked over too many therefore notes where the first step stood
-- (cyclone_note_claim_heads), in a setting of its session, and for a second, or ten times as long as it took, the next ones begin there.
-- One that does not fill its slots so has to look everywhere after all: nothing is overlooked, and only a step that comes to stand before
-- all others may wait for as long.
create or replace function cyclone_claim_heads(p_kinds text[]) returns jsonb
language plpgsql stable
as $$
declare
  v_note jsonb := nullif(current_setting('cyclone.claim_heads', true), '')::jsonb;
begin
  if v_note is null or (v_note ->> 'until')::timestamptz <= clock_timestamp() or v_note -> 'kinds' <> to_jsonb(p_kinds) then
    return null;
  end if;
  return v_note -> 'heads';
end
$$;
