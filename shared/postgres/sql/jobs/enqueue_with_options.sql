-- Adds one job of which something is said, through the one implementation that every language shares.
-- Indexes and locks: unique_key_pkey, for unique jobs alone: waits for who adds the same one.
select weirkeeper.enqueue(
  kind => %(kind)s, args => %(args)s::jsonb, run_at => %(run_at)s, priority => %(priority)s,
  owner_id => %(owner_id)s, awaited => %(awaited)s, max_attempts => %(max_attempts)s,
  timeout_ms => %(timeout_ms)s, trace => %(trace)s, tags => %(tags)s::text[],
  expires_at => %(expires_at)s, unique_by_args => %(unique_by_args)s,
  unique_by => %(unique_by)s::text[],
  unique_period => make_interval(secs => %(unique_period)s::double precision),
  unique_states => %(unique_states)s::text[], unique_wait => %(unique_wait)s,
  concurrency_key => %(concurrency_key)s)
