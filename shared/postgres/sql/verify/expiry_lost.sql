-- Jobs that wait, were never tried and are to start by a moment, of which nothing reminds: they would run
-- after it. Locks nothing. Indexes: job_pkey, expiry_pkey, attempt_pkey.
select w.job_id::text, 'expires at ' || j.expires_at
from (
  select job_id from weirkeeper.ready union all select job_id from weirkeeper.scheduled
  union all select job_id from weirkeeper.parked
) w
join weirkeeper.job j on j.id = w.job_id
where j.expires_at is not null
  and not exists (select from weirkeeper.expiry e
                  where e.queue = j.queue and e.expires_at = j.expires_at and e.job_id = j.id)
  and not exists (select from weirkeeper.attempt l
                  where l.job_id = j.id and weirkeeper.overrules_expiry(l.started_at, l.outcome, l.evidence))
limit %(limit)s
