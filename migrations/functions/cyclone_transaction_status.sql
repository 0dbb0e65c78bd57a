-- What became of a transaction whose commit was not answered (C4): committed, aborted or in progress.
create or replace function cyclone_transaction_status(p_xid text) returns text
language sql volatile as $$ select pg_xact_status(p_xid::xid8) $$;
