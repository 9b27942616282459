-- One migrator at a time in this database; held until the session ends. lock_timeout bounds the wait.
select pg_advisory_lock(1464160587, -1)
