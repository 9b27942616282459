-- Moves scheduled jobs whose time has come to the end of their lanes, with fresh numbers, in the queue where
-- their kind lies by now, and tells
-- when the next one is due or expires, or a concurrency key opens, and whether some have expired, and
-- keys opened, by now. now(), not clock_timestamp(): only a stable moment can use the index.
-- Of a process that names its epoch, it also looks around: whether rows of `running` are its own, and
-- whether others hold any, whether a job waits for a key, and whether a tick is to come (10 s: a look at
-- ticks later than this one was believed). A process at rest is told no four times, and need not ask with
-- a statement each. `running` (what is in flight) and `periodic` are small, so they are scanned.
-- Locks: the rows, SKIP LOCKED: every process of the queue may do it.
-- Indexes: scheduled_due, kind_pkey, expiry_pkey, key_opens, parked_oldest.
with due as materialized (
  select s.ctid as row_id
  from weirkeeper.scheduled s
  where s.queue = %(queue)s and s.run_at <= now()
  order by s.run_at
  limit %(limit)s
  for update skip locked
), gone as (
  delete from weirkeeper.scheduled s
  where s.ctid = any (array(select d.row_id from due d))
  returning s.job_id, s.run_at, s.queue, s.kind, s.priority, s.attempt, s.run
), placed as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, owner_id)
  select coalesce((select k.queue from weirkeeper.kind k where k.name = g.kind), g.queue),
         g.kind, g.priority, g.job_id, g.attempt, g.run,
         case when (select exists (select from weirkeeper.kind k where k.fair))
              then weirkeeper.fair_owner(g.kind, g.job_id) end
  from gone g order by g.run_at
  returning queue
)
select (select count(*) from gone)::integer,
       least(
         (select extract(epoch from s.run_at - now())::double precision
          from weirkeeper.scheduled s
          where s.queue = %(queue)s and s.run_at > now()
          order by s.run_at limit 1),
         (select extract(epoch from e.expires_at - now())::double precision
          from weirkeeper.expiry e
          where e.queue = %(queue)s and e.expires_at > now()
          order by e.expires_at limit 1),
         (select extract(epoch from k.open_at - now())::double precision
          from weirkeeper.key k
          where k.open_at > '-infinity' and k.open_at > now() and k.open_at < 'infinity'
          order by k.open_at limit 1)),
       (select true from weirkeeper.expiry e
        where e.queue = %(queue)s and e.expires_at <= now() limit 1),
       (select true from weirkeeper.key k
        where k.open_at > '-infinity' and k.open_at <= now() limit 1),
       case when %(epoch)s::bigint is not null then exists (
         select from weirkeeper.running r
         where r.epoch = %(epoch)s::bigint and r.queue = %(queue)s) end,
       case when %(epoch)s::bigint is not null then exists (
         select from weirkeeper.running r where r.epoch <> %(epoch)s::bigint) end,
       case when %(epoch)s::bigint is not null then
         (select true from weirkeeper.parked p order by p.key, p.job_id limit 1) end,
       case when %(epoch)s::bigint is not null then exists (
         select from weirkeeper.periodic t
         where t.next_at is null or t.next_at < clock_timestamp() + interval '10 s') end,
       (select count(weirkeeper.wake_queue(m.queue))
        from (select distinct p.queue from placed p where p.queue <> %(queue)s) m)
