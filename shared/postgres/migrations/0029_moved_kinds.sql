-- Jobs that waited while their kind was moved to another queue go after it.
-- breaking: no
--
-- A row says in which line it stands. What puts one in line by its job alone takes the line of the kind;
-- what hurries (claims, ends, rescues) takes the one in which the job ran, and a queue process brings such
-- rows to theirs (docs/decisions/0028).

-- As before (0021), in the line where the kind lies.
create or replace function weirkeeper.call_parked(names text[], at_most integer[] default null)
returns integer
language plpgsql set enable_seqscan = off as $$
declare
  called integer;
  queues text[];
begin
  with open as materialized (
    select k.name, w.at_most,
           (select count(*) from weirkeeper.running r where r.key = k.name)
           + (select count(*) from weirkeeper.ready y where y.key = k.name) as taken
    from unnest(names, at_most) w (name, at_most)
    join weirkeeper.key k on k.name = w.name
    where k.open_at <= clock_timestamp()
  ), most as materialized (
    select max(k.max_per_key) as n from weirkeeper.kind k
  ), room as materialized (
    select o.name, o.at_most, o.taken,
           (select max(coalesce(k.max_per_key, 1))
            from (
              select p.kind from weirkeeper.parked p
              where p.key = o.name
              order by p.job_id
              limit greatest(0, (select m.n from most m) - o.taken)
            ) c
            left join weirkeeper.kind k on k.name = c.kind) as n
    from open o
  ), next as materialized (
    select f.row_id
    from room o
    cross join lateral (
      select c.row_id, c.kind, row_number() over (order by c.job_id) as place
      from (
        select p.ctid as row_id, p.kind, p.job_id from weirkeeper.parked p
        where p.key = o.name
        order by p.job_id
        limit greatest(0, least(o.at_most, o.n - o.taken))
        for update skip locked
      ) c
    ) f
    left join weirkeeper.kind k on k.name = f.kind
    where o.taken + f.place <= coalesce(k.max_per_key, 1)
  ), gone as (
    delete from weirkeeper.parked p
    where p.ctid = any (array(select n.row_id from next n))
    returning p.*
  ), placed as (
    insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, key, owner_id)
    select coalesce((select k.queue from weirkeeper.kind k where k.name = g.kind), g.queue),
           g.kind, g.priority, g.job_id, g.attempt, g.run, g.key,
           weirkeeper.fair_owner(g.kind, g.job_id)
    from gone g order by g.job_id
    returning queue
  )
  select count(*), array_agg(distinct p.queue) into called, queues from placed p;
  perform weirkeeper.wake_queue(q.name) from unnest(queues) q (name);
  return called;
end $$;

-- As before (0005), in the line where the kind lies.
create or replace function weirkeeper.retry_jobs(ids bigint[])
returns table (job_id bigint, state text, changed boolean, held_by bigint)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  known bigint[];
  ended bigint[];
  hit bigint[];
  queues text[];
  barred jsonb;
begin
  known := array(select j.id from weirkeeper.job j where j.id = any (ids) order by j.id for update);
  with clock as materialized (
    select s.ctid as row_id from weirkeeper.scheduled s
    where s.job_id = any (known) order by s.job_id for update
  ), gone as (
    delete from weirkeeper.scheduled s
    where s.ctid = any (array(select c.row_id from clock c))
    returning s.*
  ), placed as (
    insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, owner_id)
    select coalesce((select k.queue from weirkeeper.kind k where k.name = g.kind), g.queue),
           g.kind, g.priority, g.job_id, g.attempt, g.run, weirkeeper.fair_owner(g.kind, g.job_id)
    from gone g order by g.job_id
    returning ready.job_id, ready.queue
  )
  select array_agg(p.job_id), array_agg(distinct p.queue) into hit, queues from placed p;
  ended := array(select k.id from unnest(known) k (id)
                 where weirkeeper.ended_state(k.id) in ('discarded', 'cancelled'));
  select coalesce(jsonb_object_agg(u.job_id, u.held_by), '{}') into barred
  from weirkeeper.hold_unique(ended) u;
  with again as (
    update weirkeeper.attempt a
    set state = case when a.attempt > 0 then 'retryable' else 'pending' end,
        evidence = coalesce(a.evidence, '{}')
                   || jsonb_build_object('retried_by_hand', clock_timestamp(), 'was', a.state)
    from unnest(ended) k (id)
    cross join lateral (
      select l.run from weirkeeper.attempt l where l.job_id = k.id order by l.run desc limit 1
    ) newest
    where a.job_id = k.id and a.run = newest.run and not barred ? k.id::text
    returning a.job_id, a.attempt, a.run
  ), placed as (
    insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, owner_id)
    select coalesce((select k.queue from weirkeeper.kind k where k.name = j.kind), j.queue),
           j.kind, j.priority, j.id, g.attempt, g.run, weirkeeper.fair_owner(j.kind, j.id)
    from again g join weirkeeper.job j on j.id = g.job_id order by j.id
    returning ready.job_id, ready.queue
  )
  select coalesce(hit, '{}') || array_agg(p.job_id), coalesce(queues, '{}') || array_agg(distinct p.queue)
  into hit, queues from placed p;
  perform weirkeeper.wake_queue(q.name) from (select distinct unnest(queues)) q (name);
  return query
    select k.id,
           case when r.run is not null then 'running'
                when w.attempt > 0 then 'retryable'
                when w.attempt = 0 then 'pending'
                else coalesce(weirkeeper.ended_state(k.id), 'pending') end,
           k.id = any (hit), (barred ->> k.id::text)::bigint
    from unnest(known) k (id)
    left join weirkeeper.running r on r.job_id = k.id
    left join lateral (
      select y.attempt from weirkeeper.ready y where y.job_id = k.id
      union all
      select p.attempt from weirkeeper.parked p where p.job_id = k.id
    ) w on true;
end $$;
