-- Unique jobs that wait or run and keep nobody out, for nobody holds their uniqueness: the same would be
-- added again. Locks nothing. Indexes: job_pkey, unique_key_pkey.
select w.job_id::text, 'of kind ' || j.kind || ': nobody holds its uniqueness'
from (
  select job_id from weirkeeper.ready union all select job_id from weirkeeper.scheduled
  union all select job_id from weirkeeper.parked union all select job_id from weirkeeper.running
) w
join weirkeeper.job j on j.id = w.job_id
where j.unique_key is not null
  and not exists (select from weirkeeper.unique_key u where u.hash = j.unique_key)
limit %(limit)s
