-- Whether this session takes and stores values as the driver sends them: every statement of the library asks it before anything else, because
-- a connection of a pool may come from somebody who has left settings on it. It raises CY010, with what is wrong, because the values have
-- arrived changed by then: text in another encoding than UTF-8, a null in an array as the text NULL; and without triggers no foreign key holds.
-- Whoever calls the functions by hand, with psql for example, may well have another encoding.
create or replace function cyclone_check_session() returns boolean
language plpgsql stable
as $$
begin
  if current_setting('client_encoding') = 'UTF8' and current_setting('array_nulls') = 'on' and current_setting('session_replication_role') <> 'replica' then
    return true;
  end if;
  raise exception 'the session has client_encoding = %, array_nulls = %, session_replication_role = %, and Cyclone needs UTF8, on, origin',
    current_setting('client_encoding'), current_setting('array_nulls'), current_setting('session_replication_role') using errcode = 'CY010';
end
$$;
