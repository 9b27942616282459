-- Writes queues that are new or changed. Index: queue_pkey.
insert into weirkeeper.queue as q (name, awaited)
select d.name, d.awaited
from unnest(%(names)s::text[], %(awaited)s::boolean[]) as d (name, awaited)
where not exists (
  select from weirkeeper.queue h where h.name = d.name and h.awaited = d.awaited)
on conflict (name) do update set awaited = excluded.awaited, declared_at = now()
