-- Removes rows of processes that stopped or fell silent long ago, oldest first. Never one that a
-- running job still names: rescue reads it. Locks: the rows, SKIP LOCKED. Index: process_pkey.
with old as materialized (
  select p.ctid as row_id from weirkeeper.process p
  where p.beat_at < clock_timestamp() - make_interval(secs => %(age)s::float8)
    and not exists (select from weirkeeper.running r where r.epoch = p.epoch)
  order by p.epoch
  limit %(size)s
  for update skip locked
)
delete from weirkeeper.process p where p.ctid = any (array(select o.row_id from old o))
