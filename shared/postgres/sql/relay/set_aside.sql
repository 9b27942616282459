-- Takes an event that failed out of the line, so that it blocks nobody; its next try has a time of
-- its own. No row when another relay was faster. Indexes: event_pending_pkey, event_failure_pkey.
with gone as (
  delete from weirkeeper.event_pending p where p.seq = %(seq)s::bigint returning p.event_id
)
insert into weirkeeper.event_failure as f (event_id, failures, last_error, next_try_at)
select g.event_id, 1, left(%(error)s, 2000),
       clock_timestamp() + make_interval(secs => %(delay)s::double precision)
from gone g
on conflict (event_id) do update
set failures = f.failures + 1, last_error = excluded.last_error,
    next_try_at = excluded.next_try_at
