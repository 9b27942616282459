-- Waiting jobs (capped) of kinds that this application does not declare: nobody may ever run them.
-- Kinds are found by leaping from one to the next in the index. Locks nothing. Index: ready_pkey.
with recursive present as (
  (select y.queue, y.kind from weirkeeper.ready y order by y.queue, y.kind limit 1)
  union all
  select n.queue, n.kind
  from present p
  cross join lateral (
    select y.queue, y.kind from weirkeeper.ready y
    where (y.queue, y.kind) > (p.queue, p.kind) order by y.queue, y.kind limit 1
  ) n
)
select coalesce(sum(c.jobs), 0)::float8
from present p
cross join lateral (
  select count(*) as jobs from (
    select from weirkeeper.ready y where y.queue = p.queue and y.kind = p.kind limit %(cap)s
  ) capped
) c
where p.kind <> all (%(known)s::text[])
