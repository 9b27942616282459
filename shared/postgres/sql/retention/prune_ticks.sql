-- Removes ticks that were started long ago, except the last five of each periodic job, which are
-- shown. Locks: the rows, SKIP LOCKED. Index: periodic_tick_pkey, from both ends.
with old as materialized (
  select t.row_id
  from weirkeeper.periodic p
  cross join lateral (
    select n.tick_at from weirkeeper.periodic_tick n
    where n.name = p.name order by n.tick_at desc offset 4 limit 1
  ) fifth
  cross join lateral (
    select o.ctid as row_id from weirkeeper.periodic_tick o
    where o.name = p.name and o.tick_at < fifth.tick_at
      and o.tick_at < clock_timestamp() - make_interval(secs => %(age)s::float8)
    order by o.tick_at
    limit %(size)s
    for update skip locked
  ) t
  limit %(size)s
)
delete from weirkeeper.periodic_tick t where t.ctid = any (array(select o.row_id from old o))
