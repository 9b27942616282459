-- Writes kinds that are new or changed. Index: kind_pkey.
insert into weirkeeper.kind as k (name, queue, max_attempts, timeout_ms, awaited)
select d.*
from unnest(%(names)s::text[], %(queues)s::text[], %(max_attempts)s::integer[],
            %(timeouts_ms)s::integer[], %(awaited)s::boolean[])
     as d (name, queue, max_attempts, timeout_ms, awaited)
where not exists (
  select from weirkeeper.kind h
  where (h.name, h.queue, h.max_attempts, h.timeout_ms, h.awaited)
      = (d.name, d.queue, d.max_attempts, d.timeout_ms, d.awaited))
on conflict (name) do update
set queue = excluded.queue, max_attempts = excluded.max_attempts,
    timeout_ms = excluded.timeout_ms, awaited = excluded.awaited, declared_at = now()
