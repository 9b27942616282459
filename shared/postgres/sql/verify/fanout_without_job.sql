-- Events whose fan-out names a job that is not there, although no job of that age has been pruned.
-- null names none: left out on purpose. What it does not name is verify/event_unheard's affair.
-- Locks nothing. Indexes: event_fanout_oldest, job_pkey.
select f.event_id::text, 'job ' || named.job || ' of ' || named.subscription || ' is not there'
from weirkeeper.event_fanout f
cross join lateral jsonb_each_text(f.jobs) named (subscription, job)
where f.fanned_out_at > clock_timestamp() - make_interval(secs => %(kept)s::float8)
  and named.job is not null
  and not exists (select from weirkeeper.job j where j.id = named.job::bigint)
limit %(limit)s
