-- The last row of a window that inspector/waiting looked at; none = it saw everything.
-- Indexes, backwards: ready_job_id_key, scheduled_pkey, parked_pkey.
select every.job_id
from (
  (select y.job_id from weirkeeper.ready y
   where y.job_id < %(before)s order by y.job_id desc limit %(window)s)
  union all
  (select s.job_id from weirkeeper.scheduled s
   where s.job_id < %(before)s order by s.job_id desc limit %(window)s)
  union all
  (select p.job_id from weirkeeper.parked p
   where p.job_id < %(before)s order by p.job_id desc limit %(window)s)
) every
order by every.job_id desc offset %(window)s - 1 limit 1
