-- Takes at most %(limit)s rows of `ready`, lane by lane, and makes them rows of `running`.
-- Locks: the rows taken, FOR UPDATE SKIP LOCKED. Index: ready_pkey, one range a lane; job_pkey.
-- The pick is materialized: as `in (select … limit)` a plan may run it more than once and take more
-- rows than asked for. Payloads leave as one text, a line a job: the parent never parses a row.
-- A paused lane is skipped; it keeps its place, so that resuming it moves nothing. Jobs with a
-- concurrency key are told apart, for claims/admit: one whose turn has come brings its place along.
-- A job on an idle system waits for this alone: every node of the plan is paid for each time, so what
-- is learned for the floors is a statement of its own (claims/floors).
with picked as materialized (
  select r.row_id
  from unnest(%(kinds)s::text[], %(priorities)s::smallint[], %(bounds)s::bigint[])
       as l (kind, priority, bound)
  cross join lateral (
    select w.ctid as row_id
    from weirkeeper.ready w
    where w.queue = %(queue)s and w.kind = l.kind and w.priority = l.priority
      and w.seq > l.bound
      and not exists (select from weirkeeper.paused s where s.what = 'queue' and s.name = %(queue)s)
      and l.kind <> all (array(select s.name from weirkeeper.paused s where s.what = 'kind'))
    order by w.seq
    limit %(limit)s
    for update skip locked
  ) r
  limit %(limit)s
), taken as (
  delete from weirkeeper.ready w
  where w.ctid = any (array(select p.row_id from picked p))
  returning w.job_id, w.kind, w.priority, w.seq, w.attempt, w.run + 1 as run, w.ready_at,
            w.key
), held as (
  insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token, key)
  select t.job_id, t.run, t.attempt, %(queue)s, t.kind, t.priority, %(epoch)s, %(token)s, t.key
  from taken t
), loaded as (
  select t.*, j.max_attempts, j.timeout_ms, j.awaited, j.expires_at <= now() as expired,
         j.concurrency_key is not null as keyed,
         '{"id":"' || t.job_id || '","run":' || t.run || ',"attempt":' || t.attempt
         || ',"max_attempts":' || j.max_attempts || ',"kind":"' || t.kind
         || '","timeout_ms":' || j.timeout_ms
         || ',"event_id":' || coalesce('"' || j.event_id || '"', 'null')
         || ',"owner_id":' || coalesce(to_json(j.owner_id)::text, 'null')
         || ',"trace":' || coalesce(to_json(j.trace)::text, 'null')
         || ',"args":' || j.args::text || '}' as line
  from taken t
  -- The limit keeps this a look-up: without it a plan made while `job` was empty read all of it.
  cross join lateral (select * from weirkeeper.job where id = t.job_id limit 1) j
  order by t.priority, t.seq
)
select array_agg(l.job_id), array_agg(l.kind), array_agg(l.priority), array_agg(l.seq),
       array_agg(l.run), array_agg(l.attempt), array_agg(l.max_attempts),
       array_agg(l.timeout_ms / 1000.0::double precision), array_agg(l.awaited),
       array_agg(extract(epoch from clock_timestamp() - l.ready_at)::double precision),
       convert_to(string_agg(l.line, E'\n'), 'UTF8'),
       array_agg(l.job_id) filter (where l.expired),
       array_agg(l.job_id) filter (where l.keyed)
from loaded l
