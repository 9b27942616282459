-- Removes starts of kinds that started nothing for their period (those without a rate any more: for
-- `age`), oldest first; the others' claims do it themselves. The newest stays: it has the total.
-- Locks: such kinds, SKIP LOCKED. Indexes: kind_pkey, rate_start_at.
with idle as materialized (
  select k.name, newest.at
  from weirkeeper.kind k
  cross join lateral (
    select s.at from weirkeeper.rate_start s
    where s.kind = k.name order by s.at desc, s.total desc limit 1
  ) newest
  where newest.at < clock_timestamp()
          - make_interval(secs => coalesce(k.rate_ms / 1000.0, %(age)s::float8))
  for no key update of k skip locked
), old as materialized (
  select o.row_id
  from idle i
  cross join lateral (
    select s.ctid as row_id from weirkeeper.rate_start s
    where s.kind = i.name and s.at < i.at order by s.at, s.total limit %(size)s
  ) o
  limit %(size)s
)
delete from weirkeeper.rate_start s where s.ctid = any (array(select o.row_id from old o))
