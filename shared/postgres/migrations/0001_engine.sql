-- The engine's tables: where a row is, is its state (docs/architecture.md).
-- breaking: no
--
-- Two rules that every later migration and statement keeps:
-- 1. `ready` and `event_pending` draw their sequence number after another write of the same
--    transaction, so that a transaction which holds a number also holds a transaction id. The
--    claims' floor rests on it (shared/postgres/floors.py).
-- 2. No foreign keys on the claim path: `weirkeeper verify` judges what they would.

-- Postgres knows moments that programs cannot read: infinity, 4713 BC, the year 294276. One stored row
-- of that kind would break every list that comes to it.
create function weirkeeper.is_moment(moment timestamptz) returns boolean
language sql immutable parallel safe
return moment > '0001-01-02 00:00+00'::timestamptz and moment < '9999-12-31 00:00+00'::timestamptz;
comment on function weirkeeper.is_moment is
  'Whether a moment is in the years 1 to 9999, which every program can read; NULL for NULL.';

-- ── declarations: written at boot and by `weirkeeper migrate` from the application as data ──────

create table weirkeeper.queue (
  name text primary key check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  no integer not null generated always as identity unique,
  awaited boolean not null,
  declared_at timestamptz not null default now(),
  cap integer check (cap >= 1)
);
comment on table weirkeeper.queue is
  'Queues; `no` names a queue''s advisory locks and channel. No events: declarations.';

create table weirkeeper.kind (
  name text primary key
    check (name ~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' and length(name) <= 63),
  queue text not null references weirkeeper.queue,
  max_attempts integer not null check (max_attempts >= 1),
  timeout_ms integer not null check (timeout_ms > 0),
  awaited boolean not null,
  declared_at timestamptz not null default now(),
  searchable text[] not null default '{}',
  max_per_key integer not null default 1 check (max_per_key >= 1),
  fair boolean not null default false,
  rate_n integer check (rate_n >= 1),
  rate_ms integer check (rate_ms >= 1),
  check ((rate_n is null) = (rate_ms is null))
);
comment on table weirkeeper.kind is
  'Kinds of job with their limits. No events: declarations.';

create table weirkeeper.event_type (
  name text primary key
    check (name ~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' and length(name) <= 63),
  description text not null,
  subject text not null,
  exposure text not null check (exposure in ('internal', 'webhook')),
  declared_at timestamptz not null default now()
);
comment on table weirkeeper.event_type is
  'Event types that may be recorded. No events: declarations.';

create table weirkeeper.route (
  type text not null references weirkeeper.event_type,
  subscription text not null references weirkeeper.kind,
  coalesce boolean not null,
  primary key (type, subscription)
);
comment on table weirkeeper.route is
  'Types × subscriptions, expanded: what the relay joins. No events: declarations.';

-- ── events: the outbox ──────────────────────────────────────────────────────────────────────────

create sequence weirkeeper.event_seq as bigint;
-- Its bounds are kept by the trigger that fills in seq, not by CHECK: Postgres reads a constraint's text
-- anew for each statement, and four of them cost a record as much as its two inserts (20 of 45 µs).
create table weirkeeper.event (
  id uuid primary key default gen_random_uuid(),
  seq bigint not null,  -- left out by everybody, filled in by the trigger
  owner_id text,
  type text not null,
  subject text not null default '',
  data jsonb not null default '{}',
  occurred_at timestamptz not null default clock_timestamp(),
  trace text
);
comment on table weirkeeper.event is
  'What happened; append-only, pruned. The outbox itself. seq is an order, never a cursor.';

create sequence weirkeeper.event_pending_seq as bigint cache 1;
create table weirkeeper.event_pending (
  seq bigint primary key default nextval('weirkeeper.event_pending_seq'),
  event_id uuid not null
);
comment on table weirkeeper.event_pending is
  'Events not fanned out yet. No events: the outbox''s own bookkeeping.';

create table weirkeeper.event_fanout (
  event_id uuid primary key,
  jobs jsonb not null,
  fanned_out_at timestamptz not null default clock_timestamp()
);
-- What retention walks. Grows at its end alone, which is cheap. The relay is the only writer.
create index event_fanout_oldest on weirkeeper.event_fanout (fanned_out_at, event_id);
comment on table weirkeeper.event_fanout is
  'Event → job id by subscription, {} when nobody subscribes. No events: bookkeeping.';

create table weirkeeper.event_failure (
  event_id uuid primary key,
  failures integer not null default 0,
  last_error text not null default '',
  next_try_at timestamptz not null default clock_timestamp(),
  poisoned_at timestamptz
);
create index event_failure_due on weirkeeper.event_failure (next_try_at)
  where poisoned_at is null;
comment on table weirkeeper.event_failure is
  'Events whose fan-out failed: tried again one by one, or poisoned. No events: bookkeeping.';

-- ── jobs ────────────────────────────────────────────────────────────────────────────────────────

create table weirkeeper.job (
  id bigint primary key generated always as identity,
  kind text not null,
  queue text not null,
  args jsonb not null default '{}' check (jsonb_typeof(args) = 'object'),
  priority smallint not null default 2 check (priority between 1 and 4),
  max_attempts integer not null check (max_attempts >= 1),
  timeout_ms integer not null check (timeout_ms > 0),
  awaited boolean not null,
  owner_id text check (length(owner_id) <= 200),
  event_id uuid,
  run_at timestamptz check (weirkeeper.is_moment(run_at)),
  trace text check (length(trace) <= 200),
  created_at timestamptz not null default now(),
  -- Checked by functions, not by constraints: three of those made each insert a third slower.
  tags text[],
  expires_at timestamptz,
  unique_key bytea,
  unique_states text[],  -- final states in which it keeps its key; null: completed
  concurrency_key text
);
comment on table weirkeeper.job is
  'Payload and limits of a job; immutable, pruned. No events: jobs are not events.';

create sequence weirkeeper.ready_seq as bigint cache 1;
create table weirkeeper.ready (
  queue text not null,
  kind text not null,
  priority smallint not null,
  seq bigint not null default nextval('weirkeeper.ready_seq'),
  job_id bigint not null,
  attempt integer not null default 0 check (attempt >= 0),
  run integer not null default 0 check (run >= 0),
  ready_at timestamptz not null default clock_timestamp(),
  key text,
  owner_id text,
  primary key (queue, kind, priority, seq),
  unique (job_id)
);
create index ready_owner on weirkeeper.ready (queue, kind, priority, owner_id, seq)
  where owner_id is not null;
create index ready_key on weirkeeper.ready (key) where key is not null;
comment on table weirkeeper.ready is
  'Jobs that may be claimed, by lanes (queue, kind, priority). No events: a job''s state.';
comment on column weirkeeper.ready.key is
  'Concurrency key of which it holds a place already; null before its turn has come.';
comment on column weirkeeper.ready.owner_id is
  'Owner of a job of a fair kind, empty for nobody''s; null for all other kinds.';

create table weirkeeper.scheduled (
  job_id bigint primary key,
  run_at timestamptz not null check (weirkeeper.is_moment(run_at)),
  queue text not null,
  kind text not null,
  priority smallint not null,
  attempt integer not null check (attempt >= 0),
  run integer not null check (run >= 0),
  why text not null check (why in ('delay', 'retry', 'snooze'))
);
create index scheduled_due on weirkeeper.scheduled (queue, run_at);
comment on table weirkeeper.scheduled is
  'Jobs that wait for their time; promoted in batches. No events: a job''s state.';

create table weirkeeper.key (
  name text primary key check (length(name) between 1 and 200),
  open_at timestamptz not null default '-infinity'
);
create index key_opens on weirkeeper.key (open_at) where open_at > '-infinity';
comment on table weirkeeper.key is
  'Concurrency keys and when they open. No events: a limit, not a fact.';

create table weirkeeper.parked (
  job_id bigint primary key,
  key text not null references weirkeeper.key,
  queue text not null,
  kind text not null,
  priority smallint not null,
  attempt integer not null check (attempt >= 0),
  run integer not null check (run >= 0),
  parked_at timestamptz not null default clock_timestamp()
);
create index parked_oldest on weirkeeper.parked (key, job_id);
comment on table weirkeeper.parked is
  'Jobs that wait for their concurrency key; off the claim path. No events: a job''s state.';

create table weirkeeper.running (
  job_id bigint primary key,
  run integer not null check (run >= 1),
  attempt integer not null check (attempt >= 0),
  queue text not null,
  kind text not null,
  priority smallint not null,
  epoch bigint not null,
  token bigint not null,
  claimed_at timestamptz not null default clock_timestamp(),
  started_at timestamptz,
  key text,
  cancel_requested_at timestamptz,
  progress jsonb
);
create index running_key on weirkeeper.running (key) where key is not null;
comment on column weirkeeper.running.key is
  'Concurrency key of which it holds a place; null until the claim has been let through.';
comment on table weirkeeper.running is
  'Jobs that a process holds, with its epoch and the lease token. No events: a job''s state.';

create table weirkeeper.attempt (
  job_id bigint not null,
  run integer not null,
  attempt integer not null check (attempt >= 0),
  outcome text not null check (outcome in (
    'completed', 'failed', 'timeout', 'crashed', 'snoozed', 'discarded', 'cancelled',
    'interrupted', 'rescued')),
  state text not null check (state in (
    'pending', 'retryable', 'completed', 'discarded', 'cancelled')),
  error text,
  cause text,
  evidence jsonb,
  result jsonb,
  epoch bigint,
  claimed_at timestamptz,
  started_at timestamptz,
  finished_at timestamptz not null default clock_timestamp(),
  primary key (job_id, run),
  -- A final state is the last word on a job; the others say where it went next.
  check ((outcome = 'completed') = (state = 'completed')),
  check (outcome <> 'snoozed' or state in ('pending', 'retryable'))
);
create index attempt_ended on weirkeeper.attempt (state, finished_at)
  where state in ('discarded', 'cancelled');
create index attempt_finished on weirkeeper.attempt using brin (finished_at);
comment on table weirkeeper.attempt is
  'One row per finished attempt: the log. Its newest row tells a finished job''s state. No events.';

-- ── processes ───────────────────────────────────────────────────────────────────────────────────

create table weirkeeper.process (
  epoch bigint primary key generated always as identity,
  role text not null check (role in ('queue', 'relay', 'listener', 'metrics')),
  slot text not null,
  queue text,
  host text not null,
  boot_id text not null,
  pid_namespace bigint not null,
  pid integer not null,
  pid_started bigint not null,
  version text not null,
  phase text not null check (phase in ('starting', 'ready', 'draining', 'stopped')),
  address text,
  connections integer not null,
  backend_pids integer[] not null default '{}',
  children integer not null default 0,
  started_at timestamptz not null default clock_timestamp(),
  beat_at timestamptz not null default clock_timestamp(),
  kinds text[] not null default '{}',
  generation text not null default '' check (length(generation) <= 63),
  rest_asked_at timestamptz,
  queues jsonb check (queues is null or jsonb_typeof(queues) = 'object')
) with (fillfactor = 50);
comment on table weirkeeper.process is
  'One row per life of one process (its epoch), with its beat. No events: liveness.';
comment on column weirkeeper.process.kinds is 'Kinds that a queue process knows.';
comment on column weirkeeper.process.generation is
  'The release that the process is of (WEIRKEEPER_GENERATION, else the version).';
comment on column weirkeeper.process.rest_asked_at is
  'Since when it is asked to start nothing more; null = it works. Read at each beat.';
comment on column weirkeeper.process.queues is
  'Children by queue of a process that serves several; null = it serves the one in `queue`.';

create table weirkeeper.drain (
  epoch bigint primary key,
  role text not null,
  slot text not null,
  queue text,
  started_at timestamptz not null,
  finished_at timestamptz not null default clock_timestamp(),
  phases jsonb not null,
  jobs jsonb not null
);
comment on table weirkeeper.drain is
  'How each stop went: seconds per phase, jobs by what became of them. No events: the log.';

create table weirkeeper.periodic (
  name text primary key check (length(name) <= 63),
  every interval check (every > interval '0'),
  cron text,
  timezone text,
  next_at timestamptz,
  last_started_at timestamptz,
  kind text not null references weirkeeper.kind,
  args jsonb not null default '{}' check (jsonb_typeof(args) = 'object'),
  missed text not null default 'once' check (missed in ('once', 'skip')),
  timeout_ms integer not null check (timeout_ms > 0),
  declared_at timestamptz not null default now(),
  check ((every is null) <> (cron is null)),
  check ((cron is null) = (timezone is null))
);
comment on table weirkeeper.periodic is
  'Periodic jobs and their next tick. No events: a schedule.';
comment on column weirkeeper.periodic.next_at is
  'The tick that comes next; null until a process has worked out the first one of a cron.';

create table weirkeeper.periodic_tick (
  name text not null references weirkeeper.periodic,
  tick_at timestamptz not null,
  job_id bigint not null,
  started_at timestamptz not null default clock_timestamp(),
  extra boolean not null default false,
  primary key (name, tick_at)
);
comment on table weirkeeper.periodic_tick is
  'Ticks that were started, unique, so that each starts once; extra runs too. No events: a schedule.';
