-- Discards jobs that have waited past the horizon and are of a kind that neither this application
-- declares nor any living queue process knows. By hand they can be retried. Kinds are found by
-- leaping from one to the next in the index. Locks: the rows, SKIP LOCKED. Index: ready_pkey.
with recursive present as (
  (select y.queue, y.kind from weirkeeper.ready y order by y.queue, y.kind limit 1)
  union all
  select n.queue, n.kind
  from present p
  cross join lateral (
    select y.queue, y.kind from weirkeeper.ready y
    where (y.queue, y.kind) > (p.queue, p.kind) order by y.queue, y.kind limit 1
  ) n
), stranger as materialized (
  select p.queue, p.kind from present p
  where p.kind <> all (%(known)s::text[])
    and not exists (
      select from weirkeeper.process o
      where p.kind = any (o.kinds) and o.phase <> 'stopped'
        and o.beat_at > clock_timestamp() - make_interval(secs => %(lease)s::float8))
), old as materialized (
  select r.row_id
  from stranger s
  cross join generate_series(1, 4) as priority (n)
  cross join lateral (
    select w.ctid as row_id from weirkeeper.ready w
    where w.queue = s.queue and w.kind = s.kind and w.priority = priority.n
      and w.ready_at < clock_timestamp() - make_interval(secs => %(horizon)s::float8)
    order by w.seq
    limit %(size)s
    for update skip locked
  ) r
  limit %(size)s
), gone as (
  delete from weirkeeper.ready w
  where w.ctid = any (array(select o.row_id from old o))
  returning w.job_id, w.kind, w.attempt, w.run, w.key
), logged as (
  insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, error, cause)
  select g.job_id, g.run + 1, g.attempt, 'discarded', 'discarded',
         'kind ' || g.kind || ': expected a process that knows it; got none in time; '
         || 'deploy one that does, then retry the job', 'unknown_kind'
  from gone g
)
select (select count(*) from gone)::integer,
       (select weirkeeper.release_unique(array_agg(g.job_id), 'discarded') from gone g),
       (select weirkeeper.tell_final(array_agg(g.job_id)) from gone g),
       (select weirkeeper.unpark(array_agg(g.key))
        from gone g where g.key is not null having count(*) > 0)
