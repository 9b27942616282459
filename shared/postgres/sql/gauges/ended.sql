-- Discarded and cancelled jobs by queue, each counted up to the cap; one that was tried again by hand
-- is not counted. Completed jobs are never counted: there are too many. LATERAL with LIMIT keeps each
-- look-up a look-up. Locks nothing.
-- Indexes: attempt_ended, attempt_pkey, job_pkey, ready_job_id_key, running_pkey.
select j.queue, e.state, count(*)::float8
from unnest(array['discarded', 'cancelled']) as wanted (state)
cross join lateral (
  select a.job_id, a.run, a.state from weirkeeper.attempt a
  where a.state = wanted.state and a.state in ('discarded', 'cancelled')
  limit %(cap)s
) e
cross join lateral (select b.queue from weirkeeper.job b where b.id = e.job_id limit 1) j
cross join lateral (
  select l.run from weirkeeper.attempt l where l.job_id = e.job_id order by l.run desc limit 1
) newest
left join lateral (
  select true as again from weirkeeper.ready y where y.job_id = e.job_id limit 1
) waits on true
left join lateral (
  select true as again from weirkeeper.running n where n.job_id = e.job_id limit 1
) runs on true
where newest.run = e.run and waits.again is null and runs.again is null
group by j.queue, e.state
