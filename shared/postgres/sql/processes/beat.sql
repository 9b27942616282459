-- One beat: one HOT update by primary key. No row back = this life was declared dead: fence oneself.
-- What comes back otherwise: whether it was asked to rest, and how many sessions of others were ended:
-- those whose process has not beaten for longer than the lease. A frozen sleeper holds its locks, and every
-- writer pays for a notice (docs/decisions/0001); its kernel goes on answering the server's keepalives.
-- A session that began after that last beat is somebody else's, who got the number. Index: process_pkey;
-- the other lives are as few as retention leaves.
with me as (
  update weirkeeper.process
  set beat_at = clock_timestamp(), phase = %(phase)s, address = coalesce(%(address)s, address),
      backend_pids = %(backend_pids)s
  where epoch = %(epoch)s and phase <> 'stopped'
  returning rest_asked_at is not null as rests
), ended as (
  select pg_terminate_backend(a.pid)
  from weirkeeper.process p
  cross join unnest(p.backend_pids) as known (pid)
  cross join lateral pg_stat_get_activity(known.pid) a
  where p.phase <> 'stopped' and p.epoch <> %(epoch)s
    and p.beat_at < clock_timestamp() - %(lease)s * interval '1 s'
    and a.backend_start < p.beat_at and starts_with(a.application_name, %(ours)s)
    and a.datid = (select oid from pg_database where datname = current_database())
    and a.usesysid = (select oid from pg_roles where rolname = current_user)
)
select me.rests, (select count(*) from ended) from me
