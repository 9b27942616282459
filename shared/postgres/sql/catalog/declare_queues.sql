-- Writes queues that are new or changed. Index: queue_pkey.
insert into weirkeeper.queue as q (name, awaited, cap)
select d.name, d.awaited, d.cap
from unnest(%(names)s::text[], %(awaited)s::boolean[], %(caps)s::integer[]) as d (name, awaited, cap)
where not exists (
  select from weirkeeper.queue h
  where h.name = d.name and h.awaited = d.awaited and h.cap is not distinct from d.cap)
on conflict (name) do update
set awaited = excluded.awaited, cap = excluded.cap, declared_at = now()
