-- Writes periodic jobs that are new or changed. A new one's first tick is now, or worked out by the
-- first process that looks (null); a changed one keeps its next tick until a process corrects it.
-- Index: periodic_pkey.
insert into weirkeeper.periodic as p
  (name, kind, args, every, cron, timezone, missed, timeout_ms, next_at)
select d.name, d.kind, d.args::jsonb, make_interval(secs => d.every), d.cron, d.timezone, d.missed,
       d.timeout_ms, case when d.at_once then clock_timestamp() end
from unnest(%(names)s::text[], %(kinds)s::text[], %(args)s::text[], %(every)s::float8[],
            %(crons)s::text[], %(timezones)s::text[], %(missed)s::text[],
            %(timeouts_ms)s::integer[], %(at_once)s::boolean[])
     as d (name, kind, args, every, cron, timezone, missed, timeout_ms, at_once)
where not exists (
  select from weirkeeper.periodic h
  where (h.name, h.kind, h.args, h.missed, h.timeout_ms)
      = (d.name, d.kind, d.args::jsonb, d.missed, d.timeout_ms)
    and (h.every, h.cron, h.timezone)
        is not distinct from (make_interval(secs => d.every), d.cron, d.timezone))
on conflict (name) do update
set kind = excluded.kind, args = excluded.args, every = excluded.every, cron = excluded.cron,
    timezone = excluded.timezone, missed = excluded.missed, timeout_ms = excluded.timeout_ms,
    declared_at = now()
