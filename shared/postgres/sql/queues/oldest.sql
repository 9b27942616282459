-- How long the oldest job that this process could claim has been waiting: the head of each lane.
-- What pause, an unknown kind or a lock hides from the claim is hidden here too, or is somebody's.
-- Index: ready_pkey, one row a lane.
select max(extract(epoch from clock_timestamp() - h.ready_at))::double precision
from unnest(%(kinds)s::text[]) k (kind)
cross join unnest(array[1, 2, 3, 4]::smallint[]) p (priority)
cross join lateral (
  select w.ready_at from weirkeeper.ready w
  where w.queue = %(queue)s and w.kind = k.kind and w.priority = p.priority
  order by w.seq limit 1
) h
where not exists (select from weirkeeper.paused s
                  where s.what = 'kind' and s.name = k.kind
                     or s.what = 'queue' and s.name = %(queue)s)
