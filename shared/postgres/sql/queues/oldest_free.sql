-- As queues/oldest, of rows that nobody has locked: what a transaction of somebody else holds, an
-- operator's for one, is skipped by the claim as well. Asked only when the other look would end the
-- process. Locks: one row a lane, SKIP LOCKED, for this statement. Index: ready_pkey.
select max(extract(epoch from clock_timestamp() - h.ready_at))::double precision
from unnest(%(kinds)s::text[]) k (kind)
cross join unnest(array[1, 2, 3, 4]::smallint[]) p (priority)
cross join lateral (
  select w.ready_at from weirkeeper.ready w
  where w.queue = %(queue)s and w.kind = k.kind and w.priority = p.priority
  order by w.seq limit 1
  for update skip locked
) h
where not exists (select from weirkeeper.paused s
                  where s.what = 'kind' and s.name = k.kind
                     or s.what = 'queue' and s.name = %(queue)s)
