-- Rows that name a job which is not there: in line they can never be run, in the log nobody finds
-- them, and a uniqueness would be held for ever. Reads the log whole. Locks nothing. Index: job_pkey.
select r.job_id::text, 'in ' || string_agg(distinct r.place, ' and ' order by r.place)
from (
  select job_id, 'ready' as place from weirkeeper.ready
  union all select job_id, 'scheduled' from weirkeeper.scheduled
  union all select job_id, 'parked' from weirkeeper.parked
  union all select job_id, 'running' from weirkeeper.running
  union all select job_id, 'attempt' from weirkeeper.attempt
  union all select job_id, 'unique_key' from weirkeeper.unique_key
) r
where not exists (select from weirkeeper.job j where j.id = r.job_id)
group by r.job_id
limit %(limit)s
