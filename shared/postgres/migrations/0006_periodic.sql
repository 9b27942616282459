-- Periodic jobs: each tick starts once; and retention.
-- breaking: no

-- Enqueues a job of a periodic and writes its tick. The caller holds the row of the periodic.
-- The commit is synchronous, whatever the session's setting: a crash of the server that took back
-- the tick, but not what its job did meanwhile, would start it a second time.
create function weirkeeper.start_periodic(
  started weirkeeper.periodic, tick timestamptz, extra boolean
) returns bigint
language plpgsql as $$
declare
  new_id bigint;
begin
  perform set_config('synchronous_commit', 'on', true);
  insert into weirkeeper.job (kind, args, max_attempts, timeout_ms)
  values (started.kind, started.args, 1, started.timeout_ms)
  returning id into new_id;
  insert into weirkeeper.periodic_tick (name, tick_at, job_id, extra)
  values (started.name, tick, new_id, extra);
  update weirkeeper.periodic p set last_started_at = clock_timestamp() where p.name = started.name;
  return new_id;
end $$;
comment on function weirkeeper.start_periodic is
  'Internal: one job for one tick; not retried, ended after the periodic''s timeout.';

-- Moves a periodic from the tick that is due to the one that follows, and starts that tick's job.
-- Guarded: of all processes that saw the same tick, the first moves it on, and the others find
-- another next_at. The clock is the database's. No job, only the move, when the tick is to be
-- skipped, when it was started before (the clock went back), or when the job of the last one still
-- waits in line: it stands for this one as well, so that a queue at rest gathers no pile.
create function weirkeeper.fire_periodic(
  periodic_name text, tick timestamptz, following timestamptz, skip boolean
) returns bigint
language plpgsql as $$
declare
  due weirkeeper.periodic;
begin
  update weirkeeper.periodic p set next_at = following
  where p.name = periodic_name and p.next_at = tick and tick <= clock_timestamp()
  returning * into due;
  if not found or skip
     or exists (select from weirkeeper.periodic_tick t
                where t.name = periodic_name and t.tick_at = tick)
     or exists (select from weirkeeper.ready r
                where r.job_id = (select t.job_id from weirkeeper.periodic_tick t
                                  where t.name = periodic_name
                                  order by t.tick_at desc limit 1)) then
    return null;
  end if;
  return weirkeeper.start_periodic(due, tick, false);
end $$;
comment on function weirkeeper.fire_periodic is
  'Starts the tick that is due, exactly once; returns its job, or null.';

create function weirkeeper.run_periodic(periodic_name text) returns bigint
language plpgsql as $$
declare
  wanted weirkeeper.periodic;
begin
  select * into wanted from weirkeeper.periodic p where p.name = periodic_name for update;
  if not found then
    return null;
  end if;
  return weirkeeper.start_periodic(wanted, clock_timestamp(), true);
end $$;
comment on function weirkeeper.run_periodic is
  'Enqueues an extra run of a periodic, beside its schedule; returns the job, null = no such name.';

-- ── retention: each call is one batch of its own transaction, off the claim path ────────────────

-- Of these jobs, those that may go: ended long enough ago, in line nowhere, not running, and not one
-- that a periodic still shows.
create function weirkeeper.prunable(
  ids bigint[], completed_before timestamptz, ended_before timestamptz
) returns bigint[]
language sql stable as $$
  select coalesce(array_agg(j.id order by j.id), '{}')
  from unnest(ids) j (id)
  cross join lateral (
    select l.state, l.finished_at from weirkeeper.attempt l
    where l.job_id = j.id order by l.run desc limit 1
  ) a
  where (a.state = 'completed' and a.finished_at < completed_before
         or a.state in ('discarded', 'cancelled') and a.finished_at < ended_before)
    and not exists (select from weirkeeper.ready w where w.job_id = j.id)
    and not exists (select from weirkeeper.scheduled s where s.job_id = j.id)
    and not exists (select from weirkeeper.parked p where p.job_id = j.id)
    and not exists (select from weirkeeper.running r where r.job_id = j.id)
    and j.id <> all (array(
      select t.job_id from weirkeeper.periodic p
      cross join lateral (
        select n.job_id from weirkeeper.periodic_tick n
        where n.name = p.name order by n.tick_at desc limit 5
      ) t))
$$;
comment on function weirkeeper.prunable is 'Internal: of these jobs, those that retention may remove.';

-- One batch: jobs behind `after`, in order of their ids. They are judged, locked (what a retry by
-- hand holds is left out), and judged anew by a later snapshot before they go, so that none goes
-- that waits again. Nobody is ever waited for.
create function weirkeeper.prune_jobs(
  after bigint, size integer, completed_before timestamptz, ended_before timestamptz,
  out upto bigint, out pruned integer, out more boolean
) language plpgsql
-- 500 look-ups, never a table read whole: Postgres 15 prefers the latter up to some 30,000 rows.
set enable_seqscan = off as $$
declare
  page bigint[];
  old bigint[];
begin
  -- The page ends by number, not by age: behind the old jobs all young ones would be read.
  select array_agg(j.id order by j.id),
         array_agg(j.id) filter (where j.created_at < greatest(completed_before, ended_before))
  into page, old
  from (select b.id, b.created_at from weirkeeper.job b
        where b.id > after order by b.id limit size) j;
  more := cardinality(page) = size and old is not null;
  old := weirkeeper.prunable(old, completed_before, ended_before);
  old := array(select j.id from weirkeeper.job j where j.id = any (old)
               order by j.id for update skip locked);
  old := weirkeeper.prunable(old, completed_before, ended_before);
  delete from weirkeeper.attempt a where a.job_id = any (old);
  delete from weirkeeper.job j where j.id = any (old);
  get diagnostics pruned = row_count;
  perform weirkeeper.release_unique(old);
  upto := page[cardinality(page)];
  more := coalesce(more, false);
end $$;
comment on function weirkeeper.prune_jobs is
  'Removes ended jobs of one page with their log and uniqueness. more: go on behind upto.';

-- One batch of events that were fanned out before a moment, oldest first. Events not fanned out yet
-- have no row here, and poisoned ones have one elsewhere, so both stay; and so does an event that an
-- unfinished job is named for.
create function weirkeeper.prune_events(
  after_at timestamptz, after_id uuid, size integer, before timestamptz,
  out upto_at timestamptz, out upto_id uuid, out pruned integer, out more boolean
) language plpgsql
set enable_seqscan = off as $$
declare
  page uuid[];
  old uuid[];
begin
  select array_agg(f.event_id order by f.fanned_out_at, f.event_id),
         max(f.fanned_out_at),
         array_agg(f.event_id) filter (where not exists (
           select from weirkeeper.event_failure x where x.event_id = f.event_id
         ) and not exists (
           select from jsonb_each_text(f.jobs) named (subscription, job)
           where exists (select from weirkeeper.ready w where w.job_id = named.job::bigint)
              or exists (select from weirkeeper.scheduled s where s.job_id = named.job::bigint)
              or exists (select from weirkeeper.parked p where p.job_id = named.job::bigint)
              or exists (select from weirkeeper.running r where r.job_id = named.job::bigint)))
  into page, upto_at, old
  from (select b.event_id, b.fanned_out_at, b.jobs from weirkeeper.event_fanout b
        where (b.fanned_out_at, b.event_id) > (after_at, after_id) and b.fanned_out_at < before
        order by b.fanned_out_at, b.event_id limit size) f;
  old := array(select e.event_id from weirkeeper.event_fanout e where e.event_id = any (old)
               order by e.event_id for update skip locked);
  delete from weirkeeper.event e where e.id = any (old);
  delete from weirkeeper.event_fanout f where f.event_id = any (old);
  get diagnostics pruned = row_count;
  upto_id := page[cardinality(page)];
  more := coalesce(cardinality(page) = size, false);
end $$;
comment on function weirkeeper.prune_events is
  'Removes events of one page with their fan-out. more: go on behind (upto_at, upto_id).';
