-- Events by hand: requeue and replay; since when a route stands; what published writings tell.
-- breaking: no

-- Whether a fan-out should have known a subscription: `weirkeeper verify` compares the two moments.
alter table weirkeeper.route
  add column since timestamptz not null default clock_timestamp();
comment on column weirkeeper.route.since is
  'When the subscription began to want the type: events fanned out before are not lost to it.';

-- ── requeue ─────────────────────────────────────────────────────────────────────────────────────

create function weirkeeper.requeue_events(ids uuid[] default null) returns setof uuid
language plpgsql as $$
begin
  return query
    update weirkeeper.event_failure f
    set failures = 0, poisoned_at = null, next_try_at = clock_timestamp()
    where f.event_id = any (ids) or ids is null and f.poisoned_at is not null
    returning f.event_id;
  perform weirkeeper.wake(0, 'weirkeeper_relay');
end $$;
comment on function weirkeeper.requeue_events is
  'Has the relay try events again whose fan-out failed, their count cleared; null = every poisoned one.';

-- For whoever does not want it any more: the fan-out then says of each subscription, with null, that it
-- was left out on purpose, which is not the same as to have been forgotten.
create function weirkeeper.skip_event(id uuid) returns boolean
language plpgsql as $$
begin
  delete from weirkeeper.event_failure f where f.event_id = skip_event.id;
  if not found then
    return false;
  end if;
  insert into weirkeeper.event_fanout (event_id, jobs)
  select e.id, coalesce((select jsonb_object_agg(r.subscription, null)
                         from weirkeeper.route r where r.type = e.type), '{}')
  from weirkeeper.event e where e.id = skip_event.id
  on conflict (event_id) do nothing;
  return true;
end $$;
comment on function weirkeeper.skip_event is
  'Gives up an event that the relay could not fan out; false = it is not such a one.';

-- ── a second delivery ───────────────────────────────────────────────────────────────────────────

-- One low-priority job for each of these events that is kept, and of a coalescing subscription one for
-- each owner and subject. The fan-out then names the newest job, so that the event is kept while that
-- one waits. An event that was not fanned out is left to the relay. The array is in order of events.
create function weirkeeper.deliver_again(subscription text, ids uuid[], tag text) returns integer
language plpgsql as $$
declare
  declared weirkeeper.kind;
  merges boolean;
  total integer;
begin
  select * into declared from weirkeeper.kind k where k.name = deliver_again.subscription;
  merges := coalesce((select bool_or(r.coalesce) from weirkeeper.route r
                      where r.subscription = deliver_again.subscription), false);
  perform pg_current_xact_id();  -- a transaction id before a sequence number
  with kept as materialized (
    select g.n, e.id, e.owner_id, e.subject, e.trace,
           row_number() over (partition by case when merges then e.owner_id end,
                                           case when merges then e.subject else e.id::text end
                              order by g.n desc) as nth
    from unnest(ids) with ordinality g (id, n)
    cross join lateral (select * from weirkeeper.event o where o.id = g.id limit 1) e
    cross join lateral (
      select from weirkeeper.event_fanout f where f.event_id = g.id limit 1) fanned
  ), drawn as materialized (
    select k.*, case when k.nth = 1 then nextval('weirkeeper.job_id_seq') end as own
    from kept k
  ), numbered as materialized (
    select d.*, max(d.own) over (
      partition by case when merges then d.owner_id end,
                   case when merges then d.subject else d.id::text end) as job_id
    from drawn d
  ), jobs as (
    insert into weirkeeper.job
      (id, kind, queue, args, priority, max_attempts, timeout_ms, awaited, owner_id, event_id,
       trace, tags)
    overriding system value
    select d.own, declared.name, declared.queue,
           jsonb_build_object('event_id', d.id, 'subject', d.subject), 4,
           declared.max_attempts, declared.timeout_ms, declared.awaited, d.owner_id, d.id, d.trace,
           array['replay', tag]
    from numbered d where d.own is not null
  ), placed as (
    insert into weirkeeper.ready (queue, kind, priority, job_id)
    select declared.queue, declared.name, 4, d.own
    from numbered d where d.own is not null order by d.n
    returning job_id
  ), named as (
    update weirkeeper.event_fanout f
    set jobs = f.jobs || jsonb_build_object(declared.name, d.job_id)
    from numbered d where f.event_id = d.id
  )
  select count(*) into total from placed;
  if total > 0 then
    perform weirkeeper.wake_queue(declared.queue);
  end if;
  return total;
end $$;
comment on function weirkeeper.deliver_again is
  'Internal: gives events to a subscription once more, as jobs of priority 4; how many jobs.';

-- ── replay ──────────────────────────────────────────────────────────────────────────────────────

create table weirkeeper.replay (
  id bigint primary key generated always as identity,
  subscription text not null,
  types text[] not null,
  since timestamptz not null check (weirkeeper.is_moment(since)),
  until timestamptz not null check (weirkeeper.is_moment(until)),
  events bigint not null default 0,
  done bigint not null default 0 check (done <= events),
  jobs bigint not null default 0,
  job_id bigint,
  asked_by text check (length(asked_by) <= 200),
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  cancelled_at timestamptz,
  check (finished_at is null or cancelled_at is null)
);
comment on table weirkeeper.replay is
  'Replays that were asked for, and how far each is. No events: a command, not a fact.';

create table weirkeeper.replay_event (
  replay_id bigint not null references weirkeeper.replay on delete cascade,
  n bigint not null,
  event_id uuid not null,
  primary key (replay_id, n)
);
comment on table weirkeeper.replay_event is
  'Events that a replay has still to deliver, exactly those of its plan. No events: bookkeeping.';

-- What a replay would deliver: events that were fanned out and that the subscription wants now. Found
-- by the moment of their fan-out, which comes after that of the event: an index on the log itself
-- would be paid for by every record.
create function weirkeeper.replayable(
  subscription text, types text[], since timestamptz, until timestamptz
) returns table (event_id uuid, seq bigint)
language sql stable as $$
  select e.id, e.seq
  from weirkeeper.event_fanout f
  join weirkeeper.event e on e.id = f.event_id
  where f.fanned_out_at >= replayable.since
    and e.occurred_at >= replayable.since and e.occurred_at < replayable.until
    and e.type = any (types)
    and e.type = any (array(select r.type from weirkeeper.route r
                            where r.subscription = replayable.subscription))
$$;
comment on function weirkeeper.replayable is 'Internal: the events of a replay''s plan.';

create function weirkeeper.start_replay(
  subscription text, types text[], since timestamptz, until timestamptz, planned bigint,
  asked_by text default null
) returns bigint
language plpgsql as $$
declare
  new_id bigint;
  found_events bigint;
begin
  insert into weirkeeper.replay (subscription, types, since, until, asked_by)
  values (start_replay.subscription, start_replay.types, start_replay.since, start_replay.until,
          start_replay.asked_by)
  returning id into new_id;
  insert into weirkeeper.replay_event (replay_id, n, event_id)
  select new_id, row_number() over (order by p.seq), p.event_id
  from weirkeeper.replayable(subscription, types, since, until) p;
  get diagnostics found_events = row_count;
  if found_events <> planned then
    raise exception using errcode = 'WK007', message = format(
      'replay: expected the %s events that were planned; got %s; look at the plan again',
      planned, found_events);
  end if;
  update weirkeeper.replay r
  set events = found_events,
      -- The kind in two parts: its name stays whatever this schema is called.
      job_id = weirkeeper.enqueue('weirkeeper' || '.replay',
                                  jsonb_build_object('replay_id', new_id::text))
  where r.id = new_id;
  return new_id;
end $$;
comment on function weirkeeper.start_replay is
  'Begins a replay of exactly as many events as were planned; its id. WK007.';

-- One batch, one transaction: what was delivered is not to be delivered again, however often the job
-- that calls this is killed. The lock on the replay keeps two runs, and a cancel, apart.
create function weirkeeper.replay_batch(replay_id bigint, size integer, out left_over bigint)
language plpgsql as $$
declare
  wanted weirkeeper.replay;
  batch uuid[];
  made integer;
begin
  select * into wanted from weirkeeper.replay r where r.id = replay_batch.replay_id for update;
  if not found or wanted.cancelled_at is not null or wanted.finished_at is not null then
    left_over := 0;
    return;
  end if;
  with taken as (
    delete from weirkeeper.replay_event e
    where e.replay_id = wanted.id and e.n > wanted.done and e.n <= wanted.done + size
    returning e.n, e.event_id
  )
  select array_agg(t.event_id order by t.n) into batch from taken t;
  made := weirkeeper.deliver_again(
    wanted.subscription, coalesce(batch, '{}'), 'replay:' || wanted.id);
  left_over := wanted.events - wanted.done - coalesce(cardinality(batch), 0);
  update weirkeeper.replay r
  set done = r.events - left_over, jobs = r.jobs + made,
      finished_at = case when left_over = 0 then clock_timestamp() end
  where r.id = wanted.id;
end $$;
comment on function weirkeeper.replay_batch is
  'Internal: delivers the next events of a replay; how many are left. 0 when it was cancelled.';

create function weirkeeper.cancel_replay(replay_id bigint) returns boolean
language plpgsql as $$
begin
  update weirkeeper.replay r set cancelled_at = clock_timestamp()
  where r.id = cancel_replay.replay_id and r.finished_at is null and r.cancelled_at is null;
  if not found then
    return false;
  end if;
  delete from weirkeeper.replay_event e where e.replay_id = cancel_replay.replay_id;
  return true;
end $$;
comment on function weirkeeper.cancel_replay is
  'Delivers no more events of a replay; false = it had ended. Jobs that wait are cancelled as jobs.';

-- ── what a published writing tells ──────────────────────────────────────────────────────────────
-- Beside corpus.note.changed, which speaks of every note: these are about what the public sees.

create function site.writing_inserted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into weirkeeper.event (owner_id, type, subject, data)
  select n.owner_id, 'writing.published', 'writing://' || n.path,
         jsonb_build_object('note_id', n.id::text)
  from new_notes n where n.genre = 'writing' and n.published order by n.id;
  return null;
end $$;
comment on function site.writing_inserted is 'Trigger: records writing.published for new writings.';

create function site.writing_updated() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into weirkeeper.event (owner_id, type, subject, data)
  select n.owner_id, case when now_public then 'writing.published' else 'writing.unpublished' end,
         'writing://' || case when now_public then n.path else o.path end,
         jsonb_build_object('note_id', n.id::text)
  from new_notes n join old_notes o on o.id = n.id
  cross join lateral (
    select n.genre = 'writing' and n.published, o.genre = 'writing' and o.published
  ) public (now_public, was_public)
  where now_public <> was_public order by n.id;
  return null;
end $$;
comment on function site.writing_updated is
  'Trigger: records writing.published and writing.unpublished for what became so.';

create function site.writing_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into weirkeeper.event (owner_id, type, subject, data)
  select o.owner_id, 'writing.unpublished', 'writing://' || o.path,
         jsonb_build_object('note_id', o.id::text)
  from old_notes o where o.genre = 'writing' and o.published order by o.id;
  return null;
end $$;
comment on function site.writing_deleted is
  'Trigger: records writing.unpublished for public writings that are deleted.';

create trigger writing_inserted after insert on site.note
  referencing new table as new_notes for each statement execute function site.writing_inserted();
create trigger writing_updated after update on site.note
  referencing old table as old_notes new table as new_notes
  for each statement execute function site.writing_updated();
create trigger writing_deleted after delete on site.note
  referencing old table as old_notes for each statement execute function site.writing_deleted();
comment on table site.note is
  'Notes. Emits corpus.note.changed, writing.published, writing.unpublished by trigger.';
