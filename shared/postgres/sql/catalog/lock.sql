-- Declarations are written by one process at a time, so that upserts of several never deadlock.
select pg_advisory_xact_lock(1464160587, -2)
