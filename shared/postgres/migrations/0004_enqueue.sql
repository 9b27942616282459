-- Enqueueing: unique jobs, tags, expiry.
-- breaking: no
--
-- New SQLSTATE: WK005, another open transaction is enqueueing the same unique job.

-- ── what a job may carry ────────────────────────────────────────────────────────────────────────

create function weirkeeper.good_tags(tags text[]) returns boolean
language sql immutable strict as $$
  select cardinality(tags) = 0
      or array_ndims(tags) = 1 and cardinality(tags) <= 16
         and (select bool_and(t is not null and length(t) between 1 and 64) from unnest(tags) t)
$$;
comment on function weirkeeper.good_tags is 'At most 16 tags of 1 to 64 characters.';

create table weirkeeper.unique_key (
  hash bytea primary key,
  job_id bigint not null unique
);
comment on table weirkeeper.unique_key is
  'Which job holds a uniqueness; released by discard, cancel and prune. No events: a limit, not a fact.';

create table weirkeeper.expiry (
  queue text not null,
  expires_at timestamptz not null,
  job_id bigint not null,
  primary key (queue, expires_at, job_id)
);
comment on table weirkeeper.expiry is
  'Jobs to discard if they have not started by then. No events: a limit, not a fact.';

-- Completes a row of `job` that was inserted with kind and args alone, whoever inserts it, and
-- puts it where it waits. The bulk functions insert complete rows and skip it (queue given).
create function weirkeeper.job_complete() returns trigger
language plpgsql as $$
declare
  declared weirkeeper.kind;
begin
  select * into declared from weirkeeper.kind k where k.name = new.kind;
  if not found then
    raise exception using errcode = 'WK001', message = format(
      'kind: expected a declared kind; got %L; declare it in the application and run weirkeeper migrate',
      new.kind);
  end if;
  perform weirkeeper.check_object('args of kind ' || new.kind, new.args);
  new.queue := declared.queue;
  new.max_attempts := coalesce(new.max_attempts, declared.max_attempts);
  new.timeout_ms := coalesce(new.timeout_ms, declared.timeout_ms);
  new.awaited := coalesce(new.awaited, declared.awaited);
  perform pg_current_xact_id();  -- rule 1: a transaction id before a sequence number
  if coalesce(new.tags::text, new.expires_at::text, new.run_at::text, new.concurrency_key)
     is not null then
    perform weirkeeper.check_options(
      new.priority, new.run_at, new.max_attempts, new.timeout_ms, new.tags, new.expires_at,
      new.concurrency_key);
    insert into weirkeeper.expiry (queue, expires_at, job_id)
    select new.queue, new.expires_at, new.id where new.expires_at is not null;
  end if;
  if new.run_at > clock_timestamp() then
    insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)
    values (new.id, new.run_at, new.queue, new.kind, new.priority, 0, 0, 'delay');
  else
    insert into weirkeeper.ready (queue, kind, priority, job_id, owner_id)
    values (new.queue, new.kind, new.priority, new.id,
            case when declared.fair then coalesce(new.owner_id, '') end);
    perform weirkeeper.wake_queue(new.queue);
  end if;
  return new;
end $$;

comment on function weirkeeper.job_complete is 'Trigger: fills in and places a job.';

create trigger job_complete before insert on weirkeeper.job
  for each row when (new.queue is null) execute function weirkeeper.job_complete();

-- ── uniqueness ──────────────────────────────────────────────────────────────────────────────────

-- jsonb's text is the normal form: keys in order, no spaces, computed here for every language.
create function weirkeeper.unique_hash(
  kind text, args jsonb, keys text[] default null, period interval default null
) returns bytea
language sql volatile as $$
  select sha256(convert_to(case
    when keys is null and period is null then concat_ws(E'\n', kind, args::text)
    else concat_ws(E'\n', kind,
      jsonb_build_array(
        (select jsonb_agg(distinct k) from unnest(keys) k), extract(epoch from period),
        floor(extract(epoch from clock_timestamp()) / extract(epoch from period)))::text,
      case when keys is null then args::text else (
        select coalesce(jsonb_object_agg(k, args -> k), '{}')::text
        from unnest(keys) k where args ? k) end)
    end, 'UTF8'))
$$;
comment on function weirkeeper.unique_hash is
  'Key of a unique job: of its kind and args, or of some of their keys, within a period.';

-- Takes keys for jobs; whose key another job holds gets that one's id instead. Inserts in one
-- statement and reads in the next, whose snapshot sees what the first one met; again when it was
-- released in between. Of several jobs with one key the first (the lowest id) takes it. It may wait
-- for another open transaction that takes the same key. In order of the keys: two callers with many
-- keys never wait for each other in a circle.
-- No sequential scans, and a look-up for each key (LIMIT): a plan made while the table was small must
-- not read a large one.
create function weirkeeper.take_unique(hashes bytea[], ids bigint[]) returns bigint[]
language plpgsql set enable_seqscan = off as $$
declare
  holders bigint[];
  missing bigint;
  others bigint;
begin
  for turn in 1 .. 3 loop
    insert into weirkeeper.unique_key as u (hash, job_id)
    select t.hash, min(t.id)
    from unnest(hashes, ids) t (hash, id)
    group by t.hash order by t.hash
    on conflict (hash) do nothing;

    select array_agg(u.job_id order by t.n), count(*) filter (where u.job_id is null),
           count(*) filter (where u.job_id <> t.first)
    into holders, missing, others
    from (
      select a.hash, a.n, min(a.id) over (partition by a.hash) as first
      from unnest(hashes, ids) with ordinality a (hash, id, n)
    ) t
    left join lateral (
      select k.job_id from weirkeeper.unique_key k where k.hash = t.hash limit 1
    ) u on true;
    if missing = 0 and others > 0 and weirkeeper.take_over(hashes, ids) then
      missing := 1;  -- look again
    end if;
    if missing = 0 then
      return holders;
    end if;
  end loop;
  raise exception using errcode = '40001', message =
    'unique job: its key was released and taken again three times meanwhile; try again';
end $$;
comment on function weirkeeper.take_unique is
  'Takes the keys of unique jobs; returns who holds each. May wait; 40001, 40P01.';

-- A completed job that does not keep its key gives it up here, to the next one that asks: so the
-- finish of a plain success, the hot path, has nothing to release. A plan made while few keys were
-- kept must not read all of them when there are many.
create function weirkeeper.take_over(hashes bytea[], ids bigint[]) returns boolean
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  with stale as materialized (
    select u.hash, t.id
    from (select a.hash, min(a.id) as id from unnest(hashes, ids) a (hash, id) group by a.hash) t
    join weirkeeper.unique_key u on u.hash = t.hash
    where u.job_id <> t.id
      and exists (select from weirkeeper.job j
                  where j.id = u.job_id and 'completed' <> all (j.unique_states))
      and exists (select from weirkeeper.attempt l
                  where l.job_id = u.job_id and l.state = 'completed')
    order by u.hash
    for update of u
  )
  update weirkeeper.unique_key u set job_id = s.id from stale s where u.hash = s.hash;
  return found;
end $$;
comment on function weirkeeper.take_over is
  'Gives the keys of completed jobs that do not keep them to new ones; whether there were any.';

-- The bound on the wait ends with this function: a setting of its own. It is long enough for the
-- short locks that any insert may meet, so that only an open transaction is taken for one.
create function weirkeeper.take_unique_at_once(hashes bytea[], ids bigint[]) returns bigint[]
language plpgsql set lock_timeout = '20ms' as $$
begin
  return weirkeeper.take_unique(hashes, ids);
exception when lock_not_available then
  raise exception using errcode = 'WK005', message =
    'unique job: expected nobody else to be enqueueing the same one; '
    'got another open transaction; try again, or wait for it (unique_wait)';
end $$;
comment on function weirkeeper.take_unique_at_once is
  'As take_unique, but raises WK005 where that would wait.';

-- A look-up for each key, not NOT EXISTS: that may be planned as a hash of the whole of `job`.
create function weirkeeper.release_unique(ids bigint[], state text default null) returns bigint
language sql set enable_seqscan = off as $$
  with gone as (
    delete from weirkeeper.unique_key u
    where u.job_id = any (ids)
      and (state is null or (
        select state = any (j.unique_states) from weirkeeper.job j where j.id = u.job_id
      ) is not true)
    returning 1
  )
  select count(*) from gone
$$;
comment on function weirkeeper.release_unique is
  'Releases the keys of jobs that became discarded or cancelled (unless they keep them), or go (null).';

-- For a retry by hand: a job that was discarded or cancelled has released its key.
create function weirkeeper.hold_unique(ids bigint[])
returns table (job_id bigint, held_by bigint)
language plpgsql as $$
declare
  hashes bytea[];
  jobs bigint[];
begin
  select array_agg(j.unique_key order by j.unique_key, j.id),
         array_agg(j.id order by j.unique_key, j.id)
  into hashes, jobs
  from weirkeeper.job j where j.id = any (ids) and j.unique_key is not null;
  if jobs is null then
    return;
  end if;
  return query
    select t.id, t.holder from unnest(jobs, weirkeeper.take_unique(hashes, jobs)) t (id, holder)
    where t.holder <> t.id;
end $$;
comment on function weirkeeper.hold_unique is
  'Takes the keys of jobs that are to run again; returns those that may not, and whose key it is.';

-- ── one job ─────────────────────────────────────────────────────────────────────────────────────

create function weirkeeper.check_options(
  priority integer, run_at timestamptz, max_attempts integer, timeout_ms integer, tags text[],
  expires_at timestamptz, concurrency_key text
) returns void
language plpgsql stable as $$
begin
  if not priority between 1 and 4 then
    raise exception using errcode = 'WK004', message = format(
      'priority: expected 1 (first) to 4; got %s; leave it out for 2', priority);
  end if;
  if not weirkeeper.is_moment(run_at) or not weirkeeper.is_moment(expires_at) then
    raise exception using errcode = 'WK004', message = format(
      'run_at and expires_at: expected a moment in the years 1 to 9999; got %s and %s; leave them out for none',
      run_at, expires_at);
  end if;
  if expires_at <= run_at then
    raise exception using errcode = 'WK004', message = format(
      'expires_at: expected a moment after run_at; got %s and %s; such a job never runs',
      expires_at, run_at);
  end if;
  if max_attempts < 1 or timeout_ms < 1 then
    raise exception using errcode = 'WK004', message = format(
      'max_attempts and timeout_ms: expected 1 or more; got %s and %s; leave them out for the kind''s',
      max_attempts, timeout_ms);
  end if;
  if not weirkeeper.good_tags(tags) then
    raise exception using errcode = 'WK004', message = format(
      'tags: expected at most 16 of 1 to 64 characters; got %s; shorten them',
      left(array_to_string(tags, ', ', 'NULL'), 200));
  end if;
  if length(concurrency_key) not between 1 and 200 then
    raise exception using errcode = 'WK004', message = format(
      'concurrency_key: expected 1 to 200 characters; got %L; leave it out for none',
      left(concurrency_key, 200));
  end if;
end $$;
comment on function weirkeeper.check_options is 'Raises WK004 for options that no job can have.';

-- Final states in which the job is to keep its key: null for the default, so that it costs no room.
create function weirkeeper.check_unique(
  by_args boolean, keys text[], period interval, states text[]
) returns text[]
language plpgsql immutable as $$
begin
  if not by_args and num_nonnulls(keys, period, states) > 0 then
    raise exception using errcode = 'WK004', message =
      'unique_by, unique_period and unique_states: expected unique_by_args => true beside them';
  end if;
  if cardinality(keys) = 0 or array_position(keys, null) is not null then
    raise exception using errcode = 'WK004', message = format(
      'unique_by: expected keys of the args; got %L; leave it out for all args', keys);
  end if;
  if not (period >= interval '1 second' and period <= interval '366 days') then
    raise exception using errcode = 'WK004', message = format(
      'unique_period: expected 1 second to a year; got %L; leave it out for as long as the job is kept',
      period);
  end if;
  if not (states @> '{pending,running,retryable}'
          and states <@ '{pending,running,retryable,completed,discarded,cancelled}') then
    raise exception using errcode = 'WK004', message = format(
      'unique_states: expected pending, running, retryable and any of completed, discarded, '
      'cancelled; got %L; add or remove states', states);
  end if;
  if states is null then
    return null;
  end if;
  return array(select unnest(states) intersect
               select unnest('{completed,discarded,cancelled}'::text[]));
end $$;
comment on function weirkeeper.check_unique is
  'Raises WK004 for options of uniqueness that make no sense; returns the final states that keep it.';

create function weirkeeper.enqueue(
  kind text,
  args jsonb default '{}',
  run_at timestamptz default null,
  priority integer default null,
  owner_id text default null,
  awaited boolean default null,
  max_attempts integer default null,
  timeout_ms integer default null,
  trace text default null,
  tags text[] default null,
  expires_at timestamptz default null,
  unique_by_args boolean default false,
  unique_by text[] default null,
  unique_period interval default null,
  unique_states text[] default null,
  unique_wait boolean default true,
  concurrency_key text default null
) returns bigint
language plpgsql as $$
declare
  new_id bigint := nextval('weirkeeper.job_id_seq');
  hash bytea;
  kept_in text[];
  holder bigint;
begin
  -- Most jobs have no options: look once before looking closely.
  if num_nonnulls(priority, run_at, max_attempts, timeout_ms, tags, expires_at, concurrency_key) > 0
  then
    perform weirkeeper.check_options(
      priority, run_at, max_attempts, timeout_ms, tags, expires_at, concurrency_key);
  end if;
  if unique_by_args or num_nonnulls(unique_by, unique_period, unique_states) > 0 then
    kept_in := weirkeeper.check_unique(unique_by_args, unique_by, unique_period, unique_states);
    hash := weirkeeper.unique_hash(kind, args, unique_by, unique_period);
    holder := (case when unique_wait then weirkeeper.take_unique(array[hash], array[new_id])
               else weirkeeper.take_unique_at_once(array[hash], array[new_id]) end)[1];
    if holder <> new_id then
      return holder;
    end if;
  end if;
  insert into weirkeeper.job
    (id, kind, args, run_at, priority, owner_id, awaited, max_attempts, timeout_ms, trace, tags,
     expires_at, unique_key, unique_states, concurrency_key)
  overriding system value
  values
    (new_id, enqueue.kind, enqueue.args, enqueue.run_at, coalesce(enqueue.priority, 2),
     enqueue.owner_id, enqueue.awaited, enqueue.max_attempts, enqueue.timeout_ms, enqueue.trace,
     enqueue.tags, enqueue.expires_at, hash, kept_in, enqueue.concurrency_key);
  return new_id;
end $$;
comment on function weirkeeper.enqueue is
  'Adds a job in the caller''s transaction; returns its id, or that of the same unique one. WK001, WK002, WK004, WK005.';
