-- The fingerprint of an error that the engine itself gives, the same as the library's errorFingerprint: such texts hold numbers, and nothing
-- else that would be blanked.
create or replace function cyclone_fingerprint(p_kind text, p_error_kind text, p_error text) returns text
language sql immutable
as $$
  select left(encode(sha256(convert_to(format('[%s,%s,%s]', to_json(p_kind), to_json(p_error_kind),
    to_json(regexp_replace(p_error, '[-+]?[0-9]+([.,:][0-9]+)*', '#', 'g'))), 'UTF8')), 'hex'), 16)
$$;
