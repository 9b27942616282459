-- Concurrency keys: who calls parked jobs locks those alone that it calls.
-- breaking: no
--
-- It locked as many as the widest kind of all could have called, and left those that their own kind
-- had no place for. A place that was handed over meanwhile found its next job locked, and was lost
-- until somebody looked for keys whose jobs wait in vain.

-- The oldest parked jobs go to the end of their lanes, as many as have a place, with the place. The
-- caller holds the keys, or (at_most) hands over so many places that it holds itself. It locks no job
-- that it leaves parked: whoever hands over a place at that moment would pass over it.
create or replace function weirkeeper.call_parked(names text[], at_most integer[] default null)
returns integer
language plpgsql set enable_seqscan = off as $$
declare
  called integer;
  queues text[];
begin
  with open as materialized (
    select k.name, w.at_most,
           (select count(*) from weirkeeper.running r where r.key = k.name)
           + (select count(*) from weirkeeper.ready y where y.key = k.name) as taken
    from unnest(names, at_most) w (name, at_most)
    join weirkeeper.key k on k.name = w.name
    where k.open_at <= clock_timestamp()
  ), most as materialized (
    select max(k.max_per_key) as n from weirkeeper.kind k
  ), room as materialized (
    select o.name, o.at_most, o.taken,
           (select max(coalesce(k.max_per_key, 1))
            from (
              select p.kind from weirkeeper.parked p
              where p.key = o.name
              order by p.job_id
              limit greatest(0, (select m.n from most m) - o.taken)
            ) c
            left join weirkeeper.kind k on k.name = c.kind) as n
    from open o
  ), next as materialized (
    select f.row_id
    from room o
    cross join lateral (
      select c.row_id, c.kind, row_number() over (order by c.job_id) as place
      from (
        select p.ctid as row_id, p.kind, p.job_id from weirkeeper.parked p
        where p.key = o.name
        order by p.job_id
        limit greatest(0, least(o.at_most, o.n - o.taken))
        for update skip locked
      ) c
    ) f
    left join weirkeeper.kind k on k.name = f.kind
    where o.taken + f.place <= coalesce(k.max_per_key, 1)
  ), gone as (
    delete from weirkeeper.parked p
    where p.ctid = any (array(select n.row_id from next n))
    returning p.*
  ), placed as (
    insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, key, owner_id)
    select g.queue, g.kind, g.priority, g.job_id, g.attempt, g.run, g.key,
           weirkeeper.fair_owner(g.kind, g.job_id)
    from gone g order by g.job_id
    returning queue
  )
  select count(*), array_agg(distinct p.queue) into called, queues from placed p;
  perform weirkeeper.wake_queue(q.name) from unnest(queues) q (name);
  return called;
end $$;
