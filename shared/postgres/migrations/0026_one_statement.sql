-- A job costs its caller one statement within one function: docs/decisions/0025.
-- breaking: no

-- Postgres makes a CHECK ready anew for each statement that writes a row, and dissolves the functions in it
-- each time: this one cost an enqueue more than the six others of its table together. The same, spelt out.
alter table weirkeeper.job
  drop constraint job_run_at_check,
  add constraint job_run_at_check
    check (run_at > '0001-01-02 00:00+00'::timestamptz and run_at < '9999-12-31 00:00+00'::timestamptz);
alter table weirkeeper.scheduled
  drop constraint scheduled_run_at_check,
  add constraint scheduled_run_at_check
    check (run_at > '0001-01-02 00:00+00'::timestamptz and run_at < '9999-12-31 00:00+00'::timestamptz);

-- What jobs with options take, step by step: as enqueue was.
create function weirkeeper.enqueue_with_options(
  kind text, args jsonb, run_at timestamptz, priority integer, owner_id text, awaited boolean,
  max_attempts integer, timeout_ms integer, trace text, tags text[], expires_at timestamptz,
  unique_by_args boolean, unique_by text[], unique_period interval, unique_states text[],
  unique_wait boolean, concurrency_key text
) returns bigint
language plpgsql as $$
declare
  new_id bigint := nextval('weirkeeper.job_id_seq');
  hash bytea;
  kept_in text[];
  holder bigint;
begin
  perform weirkeeper.check_options(
    priority, run_at, max_attempts, timeout_ms, tags, expires_at, concurrency_key);
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
    (new_id, enqueue_with_options.kind, enqueue_with_options.args, enqueue_with_options.run_at,
     coalesce(enqueue_with_options.priority, 2), enqueue_with_options.owner_id,
     enqueue_with_options.awaited, enqueue_with_options.max_attempts,
     enqueue_with_options.timeout_ms, enqueue_with_options.trace, enqueue_with_options.tags,
     enqueue_with_options.expires_at, hash, kept_in, enqueue_with_options.concurrency_key);
  return new_id;
end $$;
comment on function weirkeeper.enqueue_with_options is
  'Internal: adds a job of which more is to be looked at than enqueue does at once.';

-- Each expression of PL/pgSQL is made ready anew in each transaction, and each statement has a start and an
-- end: so one look tells whether this is the usual job, and one statement adds it. It writes complete rows,
-- which the trigger of `job` has nothing to do with.
create or replace function weirkeeper.enqueue(
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
  new_id bigint;
begin
  -- A short object is within all limits of JSON: 65 levels take 130 bytes, and a number that no double holds
  -- more than 300, for jsonb writes 1e400 out.
  if unique_by_args or octet_length(args::text) > 128 or jsonb_typeof(args) is distinct from 'object'
     or priority not between 1 and 4 or max_attempts < 1 or not timeout_ms between 1 and 86400000
     or num_nonnulls(run_at, tags, expires_at, concurrency_key,
                     unique_by, unique_period, unique_states) > 0 then
    return weirkeeper.enqueue_with_options(
      kind, args, run_at, priority, owner_id, awaited, max_attempts, timeout_ms, trace, tags,
      expires_at, unique_by_args, unique_by, unique_period, unique_states, unique_wait,
      concurrency_key);
  end if;
  -- Conditions come before what is selected: so a transaction id before a sequence number (rule 1).
  with declared as materialized (
    select nextval('weirkeeper.job_id_seq') as id, k.name, k.queue, k.max_attempts, k.timeout_ms,
           k.awaited, k.fair, q.no
    from weirkeeper.kind k join weirkeeper.queue q on q.name = k.queue
    where k.name = enqueue.kind and pg_current_xact_id() is not null
  ), added as (
    insert into weirkeeper.job
      (id, kind, queue, args, priority, max_attempts, timeout_ms, awaited, owner_id, trace)
    overriding system value
    select d.id, d.name, d.queue, enqueue.args, coalesce(enqueue.priority, 2),
           coalesce(enqueue.max_attempts, d.max_attempts),
           coalesce(enqueue.timeout_ms, d.timeout_ms), coalesce(enqueue.awaited, d.awaited),
           enqueue.owner_id, enqueue.trace
    from declared d
  )
  insert into weirkeeper.ready (queue, kind, priority, job_id, owner_id)
  select d.queue, d.name, coalesce(enqueue.priority, 2), d.id,
         case when d.fair then coalesce(enqueue.owner_id, '') end
  from declared d where weirkeeper.notified(d.no, 'weirkeeper_queue_' || d.no) is not null
  returning job_id into new_id;
  if new_id is null then
    raise exception using errcode = 'WK001', message = format(
      'kind: expected a declared kind; got %L; declare it in the application and run weirkeeper migrate',
      kind);
  end if;
  return new_id;
end $$;
