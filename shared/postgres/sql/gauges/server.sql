-- What holds the server back: half of its usable connections (our budget), the oldest transaction
-- of this database, the oldest snapshot of the whole server (a prepared transaction holds one, too),
-- the same in transactions (a replication slot and a standby hold one of which no time is known), and
-- how full the notify queue is. Locks nothing; no table of ours.
select ((current_setting('max_connections')::integer
         - current_setting('superuser_reserved_connections')::integer) / 2)::float8,
       coalesce((select extract(epoch from max(clock_timestamp() - a.xact_start))
                 from pg_stat_activity a
                 where a.datname = current_database() and a.pid <> pg_backend_pid()), 0)::float8,
       coalesce(greatest(
         (select extract(epoch from max(clock_timestamp() - a.xact_start)) from pg_stat_activity a
          where a.backend_xmin is not null and a.pid <> pg_backend_pid()),
         (select extract(epoch from max(clock_timestamp() - x.prepared)) from pg_prepared_xacts x)
       ), 0)::float8,
       coalesce((select max(age(held.xid)) from (
         select a.backend_xmin from pg_stat_activity a where a.pid <> pg_backend_pid()
         union all select x.transaction from pg_prepared_xacts x
         union all select s.xmin from pg_replication_slots s
       ) held (xid)), 0)::float8,
       pg_notification_queue_usage()::float8
