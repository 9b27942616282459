-- Discards jobs of a queue that wait, paused or not, were to start before now and were never tried
-- (see claims/discard_expired). An entry of `expiry` goes with its job, or when the job was tried or
-- is over; it stays while the job runs, which may be given back, or is locked by somebody else.
-- Locks: the rows, SKIP LOCKED. Indexes: expiry_pkey, attempt_pkey, ready_job_id_key,
-- scheduled_pkey, parked_pkey, running_pkey.
with due as materialized (
  select e.ctid as row_id, e.job_id
  from weirkeeper.expiry e
  where e.queue = %(queue)s and e.expires_at <= now()
  order by e.expires_at
  limit %(limit)s
  for update skip locked
), untried as materialized (
  select d.job_id from due d
  left join lateral (
    select true as yes from weirkeeper.attempt a
    where a.job_id = d.job_id and weirkeeper.overrules_expiry(a.started_at, a.outcome, a.evidence)
    limit 1
  ) log on true
  where log.yes is null
), line as materialized (
  select w.ctid as row_id from weirkeeper.ready w
  where w.job_id = any (array(select u.job_id from untried u))
  order by w.job_id for update skip locked
), from_line as (
  delete from weirkeeper.ready w where w.ctid = any (array(select l.row_id from line l))
  returning w.job_id, w.attempt, w.run, w.key
), clock as materialized (
  select s.ctid as row_id from weirkeeper.scheduled s
  where s.job_id = any (array(select u.job_id from untried u))
  order by s.job_id for update skip locked
), from_clock as (
  delete from weirkeeper.scheduled s where s.ctid = any (array(select c.row_id from clock c))
  returning s.job_id, s.attempt, s.run, null::text
), lot as materialized (
  select p.ctid as row_id from weirkeeper.parked p
  where p.job_id = any (array(select u.job_id from untried u))
  order by p.job_id for update skip locked
), from_lot as (
  delete from weirkeeper.parked p where p.ctid = any (array(select l.row_id from lot l))
  returning p.job_id, p.attempt, p.run, null::text
), gone as materialized (
  select * from from_line union all select * from from_clock union all select * from from_lot
), logged as (
  insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, error, cause)
  select g.job_id, g.run + 1, g.attempt, 'discarded', 'discarded',
         'it was to start before it expired, and did not', 'expired'
  from gone g
), stays as materialized (
  select u.job_id from untried u
  where u.job_id <> all (array(select g.job_id from gone g))
    and (exists (select from weirkeeper.running r where r.job_id = u.job_id)
         or exists (select from weirkeeper.ready w where w.job_id = u.job_id)
         or exists (select from weirkeeper.scheduled s where s.job_id = u.job_id)
         or exists (select from weirkeeper.parked p where p.job_id = u.job_id))
), cleared as (
  delete from weirkeeper.expiry e
  where e.ctid = any (array(
    select d.row_id from due d where d.job_id <> all (array(select s.job_id from stays s))))
), hit as (
  select coalesce(array_agg(g.job_id order by g.job_id), '{}') as ids from gone g
)
select cardinality(h.ids), weirkeeper.release_unique(h.ids, 'discarded'),
       weirkeeper.tell_final(h.ids),
       (select weirkeeper.unpark(array_agg(g.key))
        from gone g where g.key is not null having count(*) > 0)
from hit h
