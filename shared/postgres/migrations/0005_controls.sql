-- Stepping in by hand: pause, cancel, retry; and the indexes that lists by hand need.
-- breaking: no
--
-- One function for each transition, callable from any language; the final notice is part of the
-- transaction that makes a job final. They tell the state that each job then has, and whether they
-- changed it. Ids that name no job are left out. Whoever locks many rows here does so in the order of
-- the jobs' ids, or skips what is locked, so that nobody ever waits in a circle. Their callers' plans
-- may be as old as an empty table: so these functions look rows up, whatever the statistics said.

create table weirkeeper.paused (
  what text not null check (what in ('queue', 'kind')),
  name text not null,
  paused_at timestamptz not null default clock_timestamp(),
  primary key (what, name)
);
comment on table weirkeeper.paused is
  'Queues and kinds whose lanes every claim skips; no job moves. No events: a setting.';

-- Lists by kind and by state, newest first. None of them costs a job that runs at once and succeeds.
create index scheduled_kind on weirkeeper.scheduled (kind, job_id);
create index attempt_ended_job on weirkeeper.attempt (state, job_id)
  where state in ('discarded', 'cancelled');

-- Takes waiting jobs out of line, for good. It changes nothing else: a job that is claimed, promoted
-- or unparked at this moment is found where it went, by whoever calls it again.
create function weirkeeper.cancel_waiting(ids bigint[]) returns bigint[]
language plpgsql as $$
declare
  hit bigint[];
  freed text[];
begin
  with line as materialized (
    select w.ctid as row_id from weirkeeper.ready w
    where w.job_id = any (ids) order by w.job_id for update skip locked
  ), from_line as (
    delete from weirkeeper.ready w
    where w.ctid = any (array(select l.row_id from line l))
    returning w.job_id, w.attempt, w.run, w.key
  ), clock as materialized (
    select s.ctid as row_id from weirkeeper.scheduled s
    where s.job_id = any (ids) order by s.job_id for update skip locked
  ), from_clock as (
    delete from weirkeeper.scheduled s
    where s.ctid = any (array(select c.row_id from clock c))
    returning s.job_id, s.attempt, s.run, null::text
  ), lot as materialized (
    select p.ctid as row_id from weirkeeper.parked p
    where p.job_id = any (ids) order by p.job_id for update skip locked
  ), from_lot as (
    delete from weirkeeper.parked p
    where p.ctid = any (array(select l.row_id from lot l))
    returning p.job_id, p.attempt, p.run, null::text
  ), gone as (
    select * from from_line union all select * from from_clock union all select * from from_lot
  ), logged as (
    insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, error, cause)
    select g.job_id, g.run + 1, g.attempt, 'cancelled', 'cancelled',
           'cancelled by hand while it waited', 'by_hand'
    from gone g
  )
  select array_agg(g.job_id order by g.job_id), array_agg(g.key) filter (where g.key is not null)
  into hit, freed from gone g;
  perform weirkeeper.release_unique(hit, 'cancelled');
  perform weirkeeper.tell_final(hit);
  -- Their places are handed over, not given up: that needs no lock on the keys, which the caller's
  -- transaction might hold for long.
  if freed is not null then
    perform weirkeeper.call_parked(array_agg(f.name), array_agg(f.n))
    from (select u.name, count(*)::integer as n from unnest(freed) u (name) group by u.name) f;
  end if;
  return coalesce(hit, '{}');
end $$;
comment on function weirkeeper.cancel_waiting is 'Cancels those of these jobs that wait; their ids.';

-- Asks for the end of running jobs. The owner is told on its queue's channel; whatever ends the run
-- from now on, the job does not wait again (completions/settle, claims/give_back, rescues/rescue).
create function weirkeeper.cancel_running(ids bigint[]) returns bigint[]
language plpgsql as $$
declare
  hit bigint[];
  queues text[];
begin
  with held as materialized (
    select r.job_id from weirkeeper.running r
    where r.job_id = any (ids) order by r.job_id for update skip locked
  ), asked as (
    update weirkeeper.running r
    set cancel_requested_at = coalesce(r.cancel_requested_at, clock_timestamp())
    from held h where r.job_id = h.job_id
    returning r.job_id, r.queue
  )
  select array_agg(a.job_id order by a.job_id), array_agg(distinct a.queue)
  into hit, queues from asked a;
  perform pg_notify('weirkeeper_queue_' || q.no, 'cancel')
  from weirkeeper.queue q where q.name = any (queues);
  return coalesce(hit, '{}');
end $$;
comment on function weirkeeper.cancel_running is
  'Asks for the end of those of these jobs that run; their ids.';

-- How jobs stand that wait nowhere and do not run: the newest row of the log is the last word.
create function weirkeeper.ended_state(id bigint) returns text
language sql stable as $$
  select a.state
  from (select l.state from weirkeeper.attempt l
        where l.job_id = id order by l.run desc limit 1) a
  where a.state in ('completed', 'discarded', 'cancelled')
    and not exists (select from weirkeeper.ready w where w.job_id = id)
    and not exists (select from weirkeeper.running r where r.job_id = id)
    and not exists (select from weirkeeper.scheduled s where s.job_id = id)
    and not exists (select from weirkeeper.parked p where p.job_id = id)
$$;
comment on function weirkeeper.ended_state is 'Final state of a job; null = it has none, or no job.';

-- Never waits for a lock: a finish locks its batch in an order of its own, and a cancel of many that
-- held some rows and waited for others would stand in a circle with it. What is in somebody's hands
-- (claimed, finished, promoted at this moment) is looked for again: one job with pauses, in which
-- nothing is held; of many, those not got hold of are told with no state, to be cancelled one by one.
create function weirkeeper.cancel_jobs(ids bigint[])
returns table (job_id bigint, state text, changed boolean)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  sought bigint[];
  hit bigint[];
  states text[];
  patient boolean;
begin
  select array_agg(j.id) into sought from weirkeeper.job j where j.id = any (ids);
  patient := cardinality(sought) = 1;
  -- Each statement sees what was committed before it.
  for round in 1 .. case when patient then 60 else 3 end loop
    exit when coalesce(cardinality(sought), 0) = 0;
    hit := weirkeeper.cancel_waiting(sought);
    return query select h.id, 'cancelled', true from unnest(hit) h (id);
    sought := array(select s.id from unnest(sought) s (id) where s.id <> all (hit));
    hit := weirkeeper.cancel_running(sought);
    return query select h.id, 'running', true from unnest(hit) h (id);
    sought := array(select s.id from unnest(sought) s (id) where s.id <> all (hit));
    select array_agg(e.id), array_agg(e.state) into hit, states
    from (select s.id, weirkeeper.ended_state(s.id) as state from unnest(sought) s (id)) e
    where e.state is not null;
    return query select e.id, e.state, false from unnest(hit, states) e (id, state);
    sought := array(
      select j.id from weirkeeper.job j
      where j.id = any (sought) and j.id <> all (coalesce(hit, '{}')));
    if patient and cardinality(sought) > 0 then
      perform pg_sleep(0.001 * round);
    end if;
  end loop;
  if patient and cardinality(sought) > 0 then
    raise exception using errcode = '55P03', message = format(
      'cancel: expected a job that stands still for a moment; got %s, held by another; try again',
      sought[1]);
  end if;
  return query select s.id, null::text, false from unnest(sought) s (id);
end $$;
comment on function weirkeeper.cancel_jobs is
  'Cancels jobs: waiting ones at once, running ones by asking their owner. Final ones stay.';

-- A scheduled job runs now. A discarded or cancelled one waits again: its last entry in the log then
-- says so, and it is tried once more even when its tries were spent. The lock on the job keeps two
-- retries, or a retry and the pruning of the same job, apart. Where another job holds the uniqueness
-- by now, it stays as it is and that one is named.
create function weirkeeper.retry_jobs(ids bigint[])
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
    select g.queue, g.kind, g.priority, g.job_id, g.attempt, g.run,
           weirkeeper.fair_owner(g.kind, g.job_id)
    from gone g order by g.job_id
  )
  select array_agg(g.job_id), array_agg(distinct g.queue) into hit, queues from gone g;
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
    select j.queue, j.kind, j.priority, j.id, g.attempt, g.run, weirkeeper.fair_owner(j.kind, j.id)
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
comment on function weirkeeper.retry_jobs is
  'Runs jobs once more: scheduled, discarded and cancelled ones. Others stay.';

create function weirkeeper.check_lane(queue text, kind text) returns void
language plpgsql stable as $$
begin
  if (queue is null) = (kind is null) then
    raise exception using errcode = 'WK004', message =
      'pause: expected a queue or a kind; got both or none; name exactly one';
  end if;
  if not exists (select from weirkeeper.queue q where q.name = check_lane.queue
                 union all
                 select from weirkeeper.kind k where k.name = check_lane.kind) then
    raise exception using errcode = 'WK006', message = format(
      '%s: expected a declared one; got %L; correct the name',
      case when kind is null then 'queue' else 'kind' end, coalesce(queue, kind));
  end if;
end $$;
comment on function weirkeeper.check_lane is
  'Raises WK004 or WK006 unless exactly one of a declared queue or kind is named.';

create function weirkeeper.pause(queue text default null, kind text default null) returns boolean
language plpgsql as $$
begin
  perform weirkeeper.check_lane(queue, kind);
  insert into weirkeeper.paused (what, name)
  values (case when pause.kind is null then 'queue' else 'kind' end,
          coalesce(pause.queue, pause.kind))
  on conflict do nothing;
  return found;
end $$;
comment on function weirkeeper.pause is
  'Starts no more jobs of a queue or kind; true = it was not paused. WK004, WK006.';

create function weirkeeper.resume(queue text default null, kind text default null) returns boolean
language plpgsql as $$
declare
  was_paused boolean;
begin
  perform weirkeeper.check_lane(queue, kind);
  delete from weirkeeper.paused p
  where p.what = case when resume.kind is null then 'queue' else 'kind' end
    and p.name = coalesce(resume.queue, resume.kind);
  was_paused := found;
  perform weirkeeper.wake_queue(coalesce(
    resume.queue, (select k.queue from weirkeeper.kind k where k.name = resume.kind)));
  return was_paused;
end $$;
comment on function weirkeeper.resume is
  'Starts jobs of a queue or kind again, at once; true = it was paused. WK004, WK006.';
