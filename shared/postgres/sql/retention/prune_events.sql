-- One batch of events that were fanned out; see the function (0006). Indexes: event_fanout_oldest,
-- event_fanout_pkey, event_pkey, event_failure_pkey, and as for jobs.
select upto_at, upto_id, pruned, more
from weirkeeper.prune_events(
  %(after_at)s, %(after_id)s, %(size)s,
  clock_timestamp() - make_interval(secs => %(age)s::float8))
