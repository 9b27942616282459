-- Events whose fan-out names a job that is not there, although no job of that age has been pruned.
-- The fan-out row is the authority: a subscription that it does not name was not there, or did not
-- want the event. Locks nothing. Indexes: event_fanout_oldest, job_pkey.
select f.event_id::text, 'job ' || named.job || ' of ' || named.subscription || ' is not there'
from weirkeeper.event_fanout f
cross join lateral jsonb_each_text(f.jobs) named (subscription, job)
where f.fanned_out_at > clock_timestamp() - make_interval(secs => %(kept)s::float8)
  and not exists (select from weirkeeper.job j where j.id = named.job::bigint)
limit %(limit)s
