-- The value below these keys, one level after the other; SQL null where a key is missing or what should have it is no object (R4).
-- The operator #> would read a key "0" of a list too.
create or replace function cyclone_below(p_value jsonb, p_keys jsonb) returns jsonb
language plpgsql immutable as $$
declare
  v_key text;
begin
  for v_key in select k.key from jsonb_array_elements_text(p_keys) with ordinality k(key, i) order by i loop
    p_value := p_value -> v_key;
  end loop;
  return p_value;
end
$$;
