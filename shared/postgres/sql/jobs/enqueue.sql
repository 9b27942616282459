-- Adds one job through the one implementation that every language shares.
select weirkeeper.enqueue(
  kind => %(kind)s, args => %(args)s::jsonb, run_at => %(run_at)s, priority => %(priority)s,
  owner_id => %(owner_id)s, awaited => %(awaited)s, max_attempts => %(max_attempts)s,
  timeout_ms => %(timeout_ms)s, trace => %(trace)s)::text
