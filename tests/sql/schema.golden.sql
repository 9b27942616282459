-- The schema after all migrations, as pg_catalog tells it; kept by tests/sql/test_schema.py.
-- Written by `python -m tests.sql`. Bodies of functions stand here as the sha256 of their text.

schema site  -- The reference site: notes and their search index.

table site.document  -- The search index: what a search finds of a note, or a tombstone. No events: derived.
  note_id bigint not null
  version bigint not null
  removed boolean not null default false
  owner_id text not null default ''::text
  genre text not null default ''::text
  path text not null default ''::text
  title text not null default ''::text
  excerpt text not null default ''::text
  body text not null default ''::text
  published boolean not null default false
  archived boolean not null default false
  words tsvector not null default ''::tsvector
  constraint document_pkey PRIMARY KEY (note_id)
  CREATE INDEX document_words ON site.document USING gin (words) WITH (fastupdate='on', gin_pending_list_limit='1024')

table site.note  -- Notes. Emits corpus.note.changed, writing.published, writing.unpublished by trigger.
  id bigint not null identity always
  owner_id text not null
  genre text not null
  parent_id bigint
  slug text not null default ''::text
  title text not null default ''::text
  body text not null default ''::text
  tags text[] not null default '{}'::text[]
  aliases text[] not null default '{}'::text[]
  lang text not null default ''::text
  published boolean not null default false
  archived boolean not null default false
  show_as_source boolean not null default true
  excerpt text not null default ''::text
  css_classes text[] not null default '{}'::text[]
  path text not null default ''::text  -- Kept by the trigger: what the subject of its events says.
  version bigint not null default 1  -- Raised by the trigger at each change.
  event_id uuid not null default gen_random_uuid()  -- Kept by the trigger: its latest event.
  created_at timestamp with time zone not null default now()
  updated_at timestamp with time zone not null default now()
  constraint note_body_check CHECK ((octet_length(body) <= 1048576))
  constraint note_excerpt_check CHECK ((length(excerpt) <= 2000))
  constraint note_genre_check CHECK ((genre = ANY (ARRAY['raw'::text, 'wiki'::text, 'writing'::text])))
  constraint note_lang_check CHECK ((length(lang) <= 35))
  constraint note_owner_id_check CHECK (((length(owner_id) >= 1) AND (length(owner_id) <= 200)))
  constraint note_slug_check CHECK ((length(slug) <= 255))
  constraint note_title_check CHECK ((length(title) <= 500))
  constraint note_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES site.note(id)
  constraint note_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX note_name ON site.note USING btree (owner_id, genre, parent_id, slug) NULLS NOT DISTINCT WHERE (slug <> ''::text)
  CREATE INDEX note_parent ON site.note USING btree (parent_id) WHERE (parent_id IS NOT NULL)
  CREATE INDEX note_path ON site.note USING hash (path)
  CREATE TRIGGER note_before BEFORE INSERT OR UPDATE ON site.note FOR EACH ROW EXECUTE FUNCTION site.note_before()
  CREATE TRIGGER note_deleted AFTER DELETE ON site.note REFERENCING OLD TABLE AS old_notes FOR EACH STATEMENT EXECUTE FUNCTION site.note_deleted()
  CREATE TRIGGER note_inserted AFTER INSERT ON site.note REFERENCING NEW TABLE AS new_notes FOR EACH STATEMENT EXECUTE FUNCTION site.note_inserted()
  CREATE TRIGGER note_updated AFTER UPDATE ON site.note REFERENCING OLD TABLE AS old_notes NEW TABLE AS new_notes FOR EACH STATEMENT EXECUTE FUNCTION site.note_updated()
  CREATE TRIGGER writing_deleted AFTER DELETE ON site.note REFERENCING OLD TABLE AS old_notes FOR EACH STATEMENT EXECUTE FUNCTION site.writing_deleted()
  CREATE TRIGGER writing_inserted AFTER INSERT ON site.note REFERENCING NEW TABLE AS new_notes FOR EACH STATEMENT EXECUTE FUNCTION site.writing_inserted()
  CREATE TRIGGER writing_updated AFTER UPDATE ON site.note REFERENCING OLD TABLE AS old_notes NEW TABLE AS new_notes FOR EACH STATEMENT EXECUTE FUNCTION site.writing_updated()

table site.note_removed  -- Deleted notes that the search index may still hold. No events: the note's delete told it.
  note_id bigint not null
  subject text not null
  version bigint not null
  constraint note_removed_pkey PRIMARY KEY (note_id)
  CREATE INDEX note_removed_subject ON site.note_removed USING hash (subject)

table site.term  -- Words of the index with what is left when one letter is missing: finds typos. No events.
  term text not null
  variants text[] not null
  constraint term_pkey PRIMARY KEY (term)
  CREATE INDEX term_variants ON site.term USING gin (variants) WITH (fastupdate=off)

sequence site.note_id_seq bigint start=1 increment=1 cache=1 cycle=False

function site.note_before() returns trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp
  sha256 93d88ad0b383fe96ae1de57d146832b3ce536048cec2feb2cf387736387191eb  -- Trigger: keeps path, version and latest event of a note.

function site.note_deleted() returns trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp
  sha256 2f965ad6bfbfcd80ede8b24191c48c716ec4dd189c7eb0706896c10cffd5f221  -- Trigger: records corpus.note.changed for deleted notes, with their last known subject.

function site.note_inserted() returns trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp
  sha256 5217949592a437fdf2479e48981da229516a81b4c08b6ab1f38fa8eaa303f529  -- Trigger: records corpus.note.changed for new notes.

function site.note_path(note site.note) returns text
  sql stable set search_path=pg_catalog, pg_temp
  sha256 1d7e4611f0dfda5b45f85cf8f3f4cb6d909c506d9d5356fc901942d067befdfd  -- raw: its id; writing: its slug; wiki: names from the root.

function site.note_updated() returns trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp
  sha256 fea1b498d76b7cfdebbcefd982637b29bc9cedd5f519d7a6b611d6155869e7f9  -- Trigger: records corpus.note.changed for what really changed; hands a new path down.

function site.path_segment(name text) returns text
  sql immutable set search_path=pg_catalog, pg_temp
  sha256 8129b6325973c2bd11066c09dc6f939eec2084e9d5578e01157381cc6cd865f6  -- Lower case, runs of anything but letters and digits become "-", at most 80 characters.

function site.refuse_cycle(note_id bigint, parent bigint) returns void
  plpgsql stable set search_path=pg_catalog, pg_temp
  sha256 561d0f4b87a02de40850d6f2c3218a5f64767f700e2b70328a1fd6877bff9f1b  -- Raises when a note would stand below itself.

function site.variants(word text) returns text[]
  sql immutable set search_path=pg_catalog, pg_temp
  sha256 1efe172bf464a66579110e3a3e18456ce1cc68660182fd74f9291a5c83d544dc  -- A word, and what is left of it without one of its letters.

function site.writing_deleted() returns trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp
  sha256 ec6bd900126e000fdc52afe4620c0bc10c91b6ce2d76fcea326b03b5fb397545  -- Trigger: records writing.unpublished for public writings that are deleted.

function site.writing_inserted() returns trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp
  sha256 d52e1d8d4f1d5d57e384693d9c847026ee74934773b73098e4882354026a75e3  -- Trigger: records writing.published for new writings.

function site.writing_updated() returns trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp
  sha256 d0b67b26c6ce2500161d82a35324ce7516253bf9671e532163a5be9ed2de261b  -- Trigger: records writing.published and writing.unpublished for what became so.

schema weirkeeper  -- Weirkeeper, the engine: events, jobs, processes.

table weirkeeper.attempt  -- One row per finished attempt: the log. Its newest row tells a finished job's state. No events.
  job_id bigint not null
  run integer not null
  attempt integer not null
  outcome text not null
  state text not null
  error text
  cause text
  evidence jsonb
  result jsonb
  epoch bigint
  claimed_at timestamp with time zone
  started_at timestamp with time zone
  finished_at timestamp with time zone not null default clock_timestamp()
  constraint attempt_attempt_check CHECK ((attempt >= 0))
  constraint attempt_check CHECK (((outcome = 'completed'::text) = (state = 'completed'::text)))
  constraint attempt_check1 CHECK (((outcome <> 'snoozed'::text) OR (state = ANY (ARRAY['pending'::text, 'retryable'::text]))))
  constraint attempt_outcome_check CHECK ((outcome = ANY (ARRAY['completed'::text, 'failed'::text, 'timeout'::text, 'crashed'::text, 'snoozed'::text, 'discarded'::text, 'cancelled'::text, 'interrupted'::text, 'rescued'::text])))
  constraint attempt_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'retryable'::text, 'completed'::text, 'discarded'::text, 'cancelled'::text])))
  constraint attempt_pkey PRIMARY KEY (job_id, run)
  CREATE INDEX attempt_ended ON weirkeeper.attempt USING btree (state, finished_at) WHERE (state = ANY (ARRAY['discarded'::text, 'cancelled'::text]))
  CREATE INDEX attempt_ended_job ON weirkeeper.attempt USING btree (state, job_id) WHERE (state = ANY (ARRAY['discarded'::text, 'cancelled'::text]))
  CREATE INDEX attempt_finished ON weirkeeper.attempt USING brin (finished_at)

table weirkeeper.delivery  -- One event on its way to one endpoint. No events: the log of what was sent.
  id bigint not null identity always
  endpoint_id bigint not null
  event_id uuid not null
  event_seq bigint not null
  event_type text not null
  owner_id text not null
  body bytea not null
  trigger text not null
  state text not null default 'pending'::text
  job_id bigint
  attempts integer not null default 0
  tries integer not null default 0
  next_at timestamp with time zone
  created_at timestamp with time zone not null default clock_timestamp()
  begun_at timestamp with time zone not null default clock_timestamp()
  ended_at timestamp with time zone
  constraint delivery_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES weirkeeper.endpoint(id) ON DELETE CASCADE
  constraint delivery_pkey PRIMARY KEY (id)
  constraint delivery_event_id_endpoint_id_key UNIQUE (event_id, endpoint_id)
  CREATE INDEX delivery_ended ON weirkeeper.delivery USING btree (ended_at) WHERE (ended_at IS NOT NULL)
  CREATE INDEX delivery_page ON weirkeeper.delivery USING btree (endpoint_id, event_seq)
  CREATE INDEX delivery_pending ON weirkeeper.delivery USING btree (endpoint_id, job_id) WHERE (state = 'pending'::text)

table weirkeeper.delivery_attempt  -- One request to an endpoint and its answer. No events: the log of what was sent.
  delivery_id bigint not null
  number integer not null
  trigger text not null
  started_at timestamp with time zone not null
  finished_at timestamp with time zone not null default clock_timestamp()
  url text not null
  result text not null
  code text not null
  status integer
  phases jsonb not null default '{}'::jsonb
  headers jsonb not null default '[]'::jsonb
  body bytea
  truncated boolean not null default false
  peer text
  constraint delivery_attempt_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES weirkeeper.delivery(id) ON DELETE CASCADE
  constraint delivery_attempt_pkey PRIMARY KEY (delivery_id, number)

table weirkeeper.drain  -- How each stop went: seconds per phase, jobs by what became of them. No events: the log.
  epoch bigint not null
  role text not null
  slot text not null
  queue text
  started_at timestamp with time zone not null
  finished_at timestamp with time zone not null default clock_timestamp()
  phases jsonb not null
  jobs jsonb not null
  constraint drain_pkey PRIMARY KEY (epoch)

table weirkeeper.endpoint with (fillfactor=70)  -- Where an owner's events are sent, its lease and how it fares. No events: a receiver, not a fact.
  id bigint not null identity always
  owner_id text not null
  url text not null
  description text not null default ''::text
  event_types text[] not null
  headers jsonb not null default '{}'::jsonb
  format text not null default 'standard'::text
  signature text not null default 'v1'::text
  ordering text not null default 'none'::text
  rate integer
  schedule double precision[]
  enabled boolean not null default true
  disabled_reason text
  disabled_at timestamp with time zone
  failing_since timestamp with time zone
  failures integer not null default 0
  noticed smallint not null default 0
  last_success_at timestamp with time zone
  busy_until timestamp with time zone
  lease_token bigint
  not_before timestamp with time zone
  tested_at timestamp with time zone
  created_at timestamp with time zone not null default clock_timestamp()
  updated_at timestamp with time zone not null default clock_timestamp()
  contact text
  probing bigint
  probed_at timestamp with time zone
  constraint endpoint_pkey PRIMARY KEY (id)
  CREATE INDEX endpoint_disabled ON weirkeeper.endpoint USING btree (id) WHERE (NOT enabled)
  CREATE INDEX endpoint_failing ON weirkeeper.endpoint USING btree (id) WHERE (disabled_reason = 'failing'::text)
  CREATE INDEX endpoint_failing_since ON weirkeeper.endpoint USING btree (failing_since) WHERE (enabled AND (failing_since IS NOT NULL))
  CREATE INDEX endpoint_owner ON weirkeeper.endpoint USING btree (owner_id, id)
  CREATE INDEX endpoint_strict ON weirkeeper.endpoint USING btree (owner_id) WHERE (ordering = 'strict'::text)
  CREATE TRIGGER endpoint_checked BEFORE INSERT OR UPDATE OF owner_id, url, description, event_types, headers, format, signature, ordering, rate, schedule, contact, enabled, disabled_reason, disabled_at, failing_since, failures ON weirkeeper.endpoint FOR EACH ROW EXECUTE FUNCTION weirkeeper.endpoint_checked()

table weirkeeper.endpoint_line  -- Events on their way to endpoints that keep order, not made deliveries yet. No events: bookkeeping.
  endpoint_id bigint not null
  event_seq bigint not null
  event_id uuid not null
  constraint endpoint_line_pkey PRIMARY KEY (endpoint_id, event_seq)

table weirkeeper.endpoint_secret  -- Signing secrets, sealed; those that were rotated away sign until they expire. No events: secrets.
  endpoint_id bigint not null
  no bigint not null identity always
  sealed bytea not null
  created_at timestamp with time zone not null default clock_timestamp()
  expires_at timestamp with time zone
  constraint endpoint_secret_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES weirkeeper.endpoint(id) ON DELETE CASCADE
  constraint endpoint_secret_pkey PRIMARY KEY (endpoint_id, no)

table weirkeeper.event  -- What happened; append-only, pruned. The outbox itself. seq is an order, never a cursor.
  id uuid not null default gen_random_uuid()
  seq bigint not null
  owner_id text
  type text not null
  subject text not null default ''::text
  data jsonb not null default '{}'::jsonb
  occurred_at timestamp with time zone not null default clock_timestamp()
  trace text
  constraint event_pkey PRIMARY KEY (id)
  CREATE TRIGGER event_complete BEFORE INSERT ON weirkeeper.event FOR EACH ROW WHEN ((new.seq IS NULL)) EXECUTE FUNCTION weirkeeper.event_complete()

table weirkeeper.event_failure  -- Events whose fan-out failed: tried again one by one, or poisoned. No events: bookkeeping.
  event_id uuid not null
  failures integer not null default 0
  last_error text not null default ''::text
  next_try_at timestamp with time zone not null default clock_timestamp()
  poisoned_at timestamp with time zone
  constraint event_failure_pkey PRIMARY KEY (event_id)
  CREATE INDEX event_failure_due ON weirkeeper.event_failure USING btree (next_try_at) WHERE (poisoned_at IS NULL)

table weirkeeper.event_fanout  -- Event → job id by subscription, {} when nobody subscribes. No events: bookkeeping.
  event_id uuid not null
  jobs jsonb not null
  fanned_out_at timestamp with time zone not null default clock_timestamp()
  constraint event_fanout_pkey PRIMARY KEY (event_id)
  CREATE INDEX event_fanout_oldest ON weirkeeper.event_fanout USING btree (fanned_out_at, event_id)

table weirkeeper.event_pending  -- Events not fanned out yet. No events: the outbox's own bookkeeping.
  seq bigint not null default nextval('weirkeeper.event_pending_seq'::regclass)
  event_id uuid not null
  constraint event_pending_pkey PRIMARY KEY (seq)

table weirkeeper.event_type  -- Event types that may be recorded. No events: declarations.
  name text not null
  description text not null
  subject text not null
  exposure text not null
  declared_at timestamp with time zone not null default now()
  constraint event_type_exposure_check CHECK ((exposure = ANY (ARRAY['internal'::text, 'webhook'::text])))
  constraint event_type_name_check CHECK (((name ~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$'::text) AND (length(name) <= 63)))
  constraint event_type_pkey PRIMARY KEY (name)

table weirkeeper.expiry  -- Jobs to discard if they have not started by then. No events: a limit, not a fact.
  queue text not null
  expires_at timestamp with time zone not null
  job_id bigint not null
  constraint expiry_pkey PRIMARY KEY (queue, expires_at, job_id)

table weirkeeper.job  -- Payload and limits of a job; immutable, pruned. No events: jobs are not events.
  id bigint not null identity always
  kind text not null
  queue text not null
  args jsonb not null default '{}'::jsonb
  priority smallint not null default 2
  max_attempts integer not null
  timeout_ms integer not null
  awaited boolean not null
  owner_id text
  event_id uuid
  run_at timestamp with time zone
  trace text
  created_at timestamp with time zone not null default now()
  tags text[]
  expires_at timestamp with time zone
  unique_key bytea
  unique_states text[]
  concurrency_key text
  constraint job_args_check CHECK ((jsonb_typeof(args) = 'object'::text))
  constraint job_max_attempts_check CHECK ((max_attempts >= 1))
  constraint job_owner_id_check CHECK ((length(owner_id) <= 200))
  constraint job_priority_check CHECK (((priority >= 1) AND (priority <= 4)))
  constraint job_run_at_check CHECK (((run_at > '0001-01-02 00:00:00+00'::timestamp with time zone) AND (run_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
  constraint job_timeout_ms_check CHECK ((timeout_ms > 0))
  constraint job_trace_check CHECK ((length(trace) <= 200))
  constraint job_pkey PRIMARY KEY (id)
  CREATE TRIGGER job_complete BEFORE INSERT ON weirkeeper.job FOR EACH ROW WHEN ((new.queue IS NULL)) EXECUTE FUNCTION weirkeeper.job_complete()

table weirkeeper.key  -- Concurrency keys and when they open. No events: a limit, not a fact.
  name text not null
  open_at timestamp with time zone not null default '-infinity'::timestamp with time zone
  constraint key_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200)))
  constraint key_pkey PRIMARY KEY (name)
  CREATE INDEX key_opens ON weirkeeper.key USING btree (open_at) WHERE (open_at > '-infinity'::timestamp with time zone)

table weirkeeper.kind  -- Kinds of job with their limits. No events: declarations.
  name text not null
  queue text not null
  max_attempts integer not null
  timeout_ms integer not null
  awaited boolean not null
  declared_at timestamp with time zone not null default now()
  searchable text[] not null default '{}'::text[]
  max_per_key integer not null default 1
  fair boolean not null default false
  rate_n integer
  rate_ms integer
  command text[] not null default '{}'::text[]  -- Program and arguments that run its jobs, of the kind or its queue; empty = a handler does.
  constraint kind_check CHECK (((rate_n IS NULL) = (rate_ms IS NULL)))
  constraint kind_max_attempts_check CHECK ((max_attempts >= 1))
  constraint kind_max_per_key_check CHECK ((max_per_key >= 1))
  constraint kind_name_check CHECK (((name ~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$'::text) AND (length(name) <= 63)))
  constraint kind_rate_ms_check CHECK ((rate_ms >= 1))
  constraint kind_rate_n_check CHECK ((rate_n >= 1))
  constraint kind_timeout_ms_check CHECK ((timeout_ms > 0))
  constraint kind_queue_fkey FOREIGN KEY (queue) REFERENCES weirkeeper.queue(name)
  constraint kind_pkey PRIMARY KEY (name)

table weirkeeper.migration  -- Migrations applied. No events: the schema's own log.
  version integer not null
  name text not null
  checksum text not null
  breaking boolean not null
  applied_at timestamp with time zone not null default now()
  constraint migration_pkey PRIMARY KEY (version)

table weirkeeper.parked  -- Jobs that wait for their concurrency key; off the claim path. No events: a job's state.
  job_id bigint not null
  key text not null
  queue text not null
  kind text not null
  priority smallint not null
  attempt integer not null
  run integer not null
  parked_at timestamp with time zone not null default clock_timestamp()
  constraint parked_attempt_check CHECK ((attempt >= 0))
  constraint parked_run_check CHECK ((run >= 0))
  constraint parked_key_fkey FOREIGN KEY (key) REFERENCES weirkeeper.key(name)
  constraint parked_pkey PRIMARY KEY (job_id)
  CREATE INDEX parked_oldest ON weirkeeper.parked USING btree (key, job_id)

table weirkeeper.paused  -- Queues and kinds whose lanes every claim skips; no job moves. No events: a setting.
  what text not null
  name text not null
  paused_at timestamp with time zone not null default clock_timestamp()
  quarantine text  -- Why a kind was paused without anybody's doing: how its children died. Null = by hand.
  constraint paused_check CHECK (((quarantine IS NULL) OR ((what = 'kind'::text) AND (length(quarantine) <= 500))))
  constraint paused_what_check CHECK ((what = ANY (ARRAY['queue'::text, 'kind'::text])))
  constraint paused_pkey PRIMARY KEY (what, name)

table weirkeeper.periodic  -- Periodic jobs and their next tick. No events: a schedule.
  name text not null
  every interval
  cron text
  timezone text
  next_at timestamp with time zone  -- The tick that comes next; null until a process has worked out the first one of a cron.
  last_started_at timestamp with time zone
  kind text not null
  args jsonb not null default '{}'::jsonb
  missed text not null default 'once'::text
  timeout_ms integer not null
  declared_at timestamp with time zone not null default now()
  last_success_at timestamp with time zone  -- End of the last start that completed and has been pruned; newer ones are found by their jobs.
  constraint periodic_args_check CHECK ((jsonb_typeof(args) = 'object'::text))
  constraint periodic_check CHECK (((every IS NULL) <> (cron IS NULL)))
  constraint periodic_check1 CHECK (((cron IS NULL) = (timezone IS NULL)))
  constraint periodic_every_check CHECK ((every > '00:00:00'::interval))
  constraint periodic_missed_check CHECK ((missed = ANY (ARRAY['once'::text, 'skip'::text])))
  constraint periodic_name_check CHECK ((length(name) <= 63))
  constraint periodic_timeout_ms_check CHECK ((timeout_ms > 0))
  constraint periodic_kind_fkey FOREIGN KEY (kind) REFERENCES weirkeeper.kind(name)
  constraint periodic_pkey PRIMARY KEY (name)

table weirkeeper.periodic_tick  -- Ticks that were started, unique, so that each starts once; extra runs too. No events: a schedule.
  name text not null
  tick_at timestamp with time zone not null
  job_id bigint not null
  started_at timestamp with time zone not null default clock_timestamp()
  extra boolean not null default false
  constraint periodic_tick_name_fkey FOREIGN KEY (name) REFERENCES weirkeeper.periodic(name)
  constraint periodic_tick_pkey PRIMARY KEY (name, tick_at)

table weirkeeper.process with (fillfactor=50)  -- One row per life of one process (its epoch), with its beat. No events: liveness.
  epoch bigint not null identity always
  role text not null
  slot text not null
  queue text
  host text not null
  boot_id text not null
  pid_namespace bigint not null
  pid integer not null
  pid_started bigint not null
  version text not null
  phase text not null
  address text
  connections integer not null
  backend_pids integer[] not null default '{}'::integer[]
  children integer not null default 0
  started_at timestamp with time zone not null default clock_timestamp()
  beat_at timestamp with time zone not null default clock_timestamp()
  kinds text[] not null default '{}'::text[]  -- Kinds that a queue process knows.
  generation text not null default ''::text  -- The release that the process is of (WEIRKEEPER_GENERATION, else the version).
  rest_asked_at timestamp with time zone  -- Since when it is asked to start nothing more; null = it works. Read at each beat.
  queues jsonb  -- Children by queue of a process that serves several; null = it serves the one in `queue`.
  constraint process_generation_check CHECK ((length(generation) <= 63))
  constraint process_phase_check CHECK ((phase = ANY (ARRAY['starting'::text, 'ready'::text, 'draining'::text, 'stopped'::text])))
  constraint process_queues_check CHECK (((queues IS NULL) OR (jsonb_typeof(queues) = 'object'::text)))
  constraint process_role_check CHECK ((role = ANY (ARRAY['queue'::text, 'relay'::text, 'listener'::text, 'metrics'::text])))
  constraint process_pkey PRIMARY KEY (epoch)

table weirkeeper.queue  -- Queues; `no` names a queue's advisory locks and channel. No events: declarations.
  name text not null
  no integer not null identity always
  awaited boolean not null
  declared_at timestamp with time zone not null default now()
  cap integer
  constraint queue_cap_check CHECK ((cap >= 1))
  constraint queue_name_check CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint queue_pkey PRIMARY KEY (name)
  constraint queue_no_key UNIQUE (no)

table weirkeeper.rate_start  -- How many jobs of a kind with a rate were claimed, and when. No events: a limit, not a fact.
  kind text not null
  at timestamp with time zone not null default clock_timestamp()
  n integer not null
  total bigint not null
  pruned_to timestamp with time zone not null default '-infinity'::timestamp with time zone
  CREATE INDEX rate_start_at ON weirkeeper.rate_start USING btree (kind, at, total)
  CREATE TRIGGER count_start BEFORE INSERT ON weirkeeper.rate_start FOR EACH ROW EXECUTE FUNCTION weirkeeper.count_start()

table weirkeeper.ready  -- Jobs that may be claimed, by lanes (queue, kind, priority). No events: a job's state.
  queue text not null
  kind text not null
  priority smallint not null
  seq bigint not null default nextval('weirkeeper.ready_seq'::regclass)
  job_id bigint not null
  attempt integer not null default 0
  run integer not null default 0
  ready_at timestamp with time zone not null default clock_timestamp()
  key text  -- Concurrency key of which it holds a place already; null before its turn has come.
  owner_id text  -- Owner of a job of a fair kind, empty for nobody's; null for all other kinds.
  constraint ready_attempt_check CHECK ((attempt >= 0))
  constraint ready_run_check CHECK ((run >= 0))
  constraint ready_pkey PRIMARY KEY (queue, kind, priority, seq)
  constraint ready_job_id_key UNIQUE (job_id)
  CREATE INDEX ready_key ON weirkeeper.ready USING btree (key) WHERE (key IS NOT NULL)
  CREATE INDEX ready_owner ON weirkeeper.ready USING btree (queue, kind, priority, owner_id, seq) WHERE (owner_id IS NOT NULL)

table weirkeeper.replay  -- Replays that were asked for, and how far each is. No events: a command, not a fact.
  id bigint not null identity always
  subscription text not null
  types text[] not null
  since timestamp with time zone not null
  until timestamp with time zone not null
  events bigint not null default 0
  done bigint not null default 0
  jobs bigint not null default 0
  job_id bigint
  asked_by text
  created_at timestamp with time zone not null default clock_timestamp()
  finished_at timestamp with time zone
  cancelled_at timestamp with time zone
  constraint replay_asked_by_check CHECK ((length(asked_by) <= 200))
  constraint replay_check CHECK ((done <= events))
  constraint replay_check1 CHECK (((finished_at IS NULL) OR (cancelled_at IS NULL)))
  constraint replay_since_check CHECK (weirkeeper.is_moment(since))
  constraint replay_until_check CHECK (weirkeeper.is_moment(until))
  constraint replay_pkey PRIMARY KEY (id)

table weirkeeper.replay_event  -- Events that a replay has still to deliver, exactly those of its plan. No events: bookkeeping.
  replay_id bigint not null
  n bigint not null
  event_id uuid not null
  constraint replay_event_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES weirkeeper.replay(id) ON DELETE CASCADE
  constraint replay_event_pkey PRIMARY KEY (replay_id, n)

table weirkeeper.route  -- Types × subscriptions, expanded: what the relay joins. No events: declarations.
  type text not null
  subscription text not null
  coalesce boolean not null
  since timestamp with time zone not null default clock_timestamp()  -- When the subscription began to want the type: events fanned out before are not lost to it.
  endpoints boolean not null default false  -- Only events whose owner has a webhook endpoint are given to this subscription.
  constraint route_subscription_fkey FOREIGN KEY (subscription) REFERENCES weirkeeper.kind(name)
  constraint route_type_fkey FOREIGN KEY (type) REFERENCES weirkeeper.event_type(name)
  constraint route_pkey PRIMARY KEY (type, subscription)

table weirkeeper.running  -- Jobs that a process holds, with its epoch and the lease token. No events: a job's state.
  job_id bigint not null
  run integer not null
  attempt integer not null
  queue text not null
  kind text not null
  priority smallint not null
  epoch bigint not null
  token bigint not null
  claimed_at timestamp with time zone not null default clock_timestamp()
  started_at timestamp with time zone
  key text  -- Concurrency key of which it holds a place; null until the claim has been let through.
  cancel_requested_at timestamp with time zone
  progress jsonb
  constraint running_attempt_check CHECK ((attempt >= 0))
  constraint running_run_check CHECK ((run >= 1))
  constraint running_pkey PRIMARY KEY (job_id)
  CREATE INDEX running_key ON weirkeeper.running USING btree (key) WHERE (key IS NOT NULL)

table weirkeeper.scheduled  -- Jobs that wait for their time; promoted in batches. No events: a job's state.
  job_id bigint not null
  run_at timestamp with time zone not null
  queue text not null
  kind text not null
  priority smallint not null
  attempt integer not null
  run integer not null
  why text not null
  constraint scheduled_attempt_check CHECK ((attempt >= 0))
  constraint scheduled_run_at_check CHECK (((run_at > '0001-01-02 00:00:00+00'::timestamp with time zone) AND (run_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
  constraint scheduled_run_check CHECK ((run >= 0))
  constraint scheduled_why_check CHECK ((why = ANY (ARRAY['delay'::text, 'retry'::text, 'snooze'::text])))
  constraint scheduled_pkey PRIMARY KEY (job_id)
  CREATE INDEX scheduled_due ON weirkeeper.scheduled USING btree (queue, run_at)
  CREATE INDEX scheduled_kind ON weirkeeper.scheduled USING btree (kind, job_id)

table weirkeeper.unique_key  -- Which job holds a uniqueness; released by discard, cancel and prune. No events: a limit, not a fact.
  hash bytea not null
  job_id bigint not null
  constraint unique_key_pkey PRIMARY KEY (hash)
  constraint unique_key_job_id_key UNIQUE (job_id)

table weirkeeper.webhook_replay  -- Events that are sent to an endpoint once more, and how far it has come. No events: bookkeeping.
  id bigint not null identity always
  endpoint_id bigint not null
  owner_id text not null
  since timestamp with time zone not null
  until timestamp with time zone not null
  failed_only boolean not null
  state text not null default 'planned'::text
  total bigint not null
  sent bigint not null default 0
  after_seq bigint not null default 0
  job_id bigint
  created_at timestamp with time zone not null default clock_timestamp()
  ended_at timestamp with time zone
  constraint webhook_replay_check CHECK ((since < until))
  constraint webhook_replay_state_check CHECK ((state = ANY (ARRAY['planned'::text, 'running'::text, 'finished'::text, 'cancelled'::text])))
  constraint webhook_replay_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES weirkeeper.endpoint(id) ON DELETE CASCADE
  constraint webhook_replay_pkey PRIMARY KEY (id)
  CREATE INDEX webhook_replay_endpoint ON weirkeeper.webhook_replay USING btree (endpoint_id, id)

table weirkeeper.webhook_replay_event  -- What a webhook replay sends, in order; goes when it ends. No events: bookkeeping.
  replay_id bigint not null
  seq bigint not null
  event_id uuid not null
  constraint webhook_replay_event_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES weirkeeper.webhook_replay(id) ON DELETE CASCADE
  constraint webhook_replay_event_pkey PRIMARY KEY (replay_id, seq, event_id)

sequence weirkeeper.delivery_id_seq bigint start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.endpoint_id_seq bigint start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.endpoint_secret_no_seq bigint start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.event_pending_seq bigint start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.job_id_seq bigint start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.process_epoch_seq bigint start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.queue_no_seq integer start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.ready_seq bigint start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.replay_id_seq bigint start=1 increment=1 cache=1 cycle=False

sequence weirkeeper.webhook_replay_id_seq bigint start=1 increment=1 cache=1 cycle=False

function weirkeeper.admit(ids bigint[], of_epoch bigint, of_token bigint) returns bigint[]
  plpgsql volatile set enable_seqscan=off
  sha256 c564bafe3e7265c773e810629c6d4b5f2586f2ab642c1c7265b41471166c7085  -- Internal: parks those of a claim's jobs whose concurrency key has no place for them; their ids.

function weirkeeper.call_parked(names text[], at_most integer[] DEFAULT NULL::integer[]) returns integer
  plpgsql volatile set enable_seqscan=off
  sha256 a120556d95cba77ab2afd1650b6d0f03aaf07263720c52b21413b9d7c9014bea  -- Internal: puts the oldest parked jobs of keys in line while there are places; how many.

function weirkeeper.cancel_jobs(ids bigint[]) returns TABLE(job_id bigint, state text, changed boolean)
  plpgsql volatile set enable_seqscan=off, enable_hashjoin=off, enable_mergejoin=off
  sha256 2403d754fcb62d33a0ea7e63d7d74688163a4231bcf235a64a93ddcc0a7f9d9c  -- Cancels jobs: waiting ones at once, running ones by asking their owner. Final ones stay.

function weirkeeper.cancel_replay(replay_id bigint) returns boolean
  plpgsql volatile
  sha256 487c1f05a6344f57fd6afda811a280deff9d6c62380e2fcb7b369838f0ea6888  -- Delivers no more events of a replay; false = it had ended. Jobs that wait are cancelled as jobs.

function weirkeeper.cancel_running(ids bigint[]) returns bigint[]
  plpgsql volatile
  sha256 d519d13622b52fe45e964b4df7a2352a44ce72a4565eb918c5d6b67a2c1e0e31  -- Asks for the end of those of these jobs that run; their ids.

function weirkeeper.cancel_waiting(ids bigint[]) returns bigint[]
  plpgsql volatile
  sha256 75c5602738e2a8d37ee847ed0dab268aad7f45575e79935f6d0006ffd8109450  -- Cancels those of these jobs that wait; their ids.

function weirkeeper.cap_room(queue_name text) returns integer
  plpgsql volatile
  sha256 9294d93a32feef988c00f30c338295c5663d46696a3d28693a4d27acf23ebcef  -- Internal: locks a queue; how many more of its jobs may run. NULL = it has no cap.

function weirkeeper.check_lane(queue text, kind text) returns void
  plpgsql stable
  sha256 a106a156783a79c79d29b59a1e5114757c7b4d24ddb320f697846ee1c14341d8  -- Raises WK004 or WK006 unless exactly one of a declared queue or kind is named.

function weirkeeper.check_object(what text, value jsonb) returns void
  plpgsql immutable
  sha256 535d031094b9fb283c7305f0bce04e1ce9b711bf69ea5c89f5593211980d06ad  -- Raises WK002 unless the value is a JSON object within the limits of size and depth.

function weirkeeper.check_options(priority integer, run_at timestamp with time zone, max_attempts integer, timeout_ms integer, tags text[], expires_at timestamp with time zone, concurrency_key text) returns void
  plpgsql stable
  sha256 57551e7e6bc7b31c5919aa6debf25c9e02a5b3719ea1804db0971a868f3ef5d7  -- Raises WK004 for options that no job can have.

function weirkeeper.check_unique(by_args boolean, keys text[], period interval, states text[]) returns text[]
  plpgsql immutable
  sha256 260e1dd2a26ccdb593a8b7f27c3dacf73c01cc61166b1770e0676985c0ebc57c  -- Raises WK004 for options of uniqueness that make no sense; returns the final states that keep it.

function weirkeeper.count_start() returns trigger
  plpgsql volatile set enable_seqscan=off
  sha256 004859b52dc7953d3436550e08b1ac3bc298835de1df51e9a13a98cd979fe533  -- Trigger: the total of a kind with a rate; removes some rows that have left the period.

function weirkeeper.deliver(endpoint bigint, event uuid, body bytea, trigger text, priority integer DEFAULT NULL::integer) returns bigint
  plpgsql volatile
  sha256 3548397ffe63f42431a27570d9a8818cfa8adee82f462fb877755b4a7a8888c5  -- Puts an event on its way to an endpoint; returns the delivery's id, or null if it is already.

function weirkeeper.deliver_again(subscription text, ids uuid[], tag text) returns integer
  plpgsql volatile
  sha256 71e20fa7b01e8051d72821a8265076257744901e5e2c802a0e027a127e07e3fc  -- Internal: gives events to a subscription once more, as jobs of priority 4; how many jobs.

function weirkeeper.disable_endpoint(endpoint bigint, reason text) returns void
  plpgsql volatile
  sha256 3749d7e52445a86f13128c9837a49f545747153dbcdabddfb700bf4b4b663114  -- Disables an endpoint; its deliveries are held until it is enabled.

function weirkeeper.enable_endpoint(endpoint bigint) returns void
  plpgsql volatile
  sha256 8fa3ce99840d04e42ed9c177e9c4cb9af50da65ca76a7f49f7b879dad739ee1c  -- Enables an endpoint with a fresh window of failures, and lets its deliveries go.

function weirkeeper.ended_state(id bigint) returns text
  sql stable
  sha256 d7f35c3f9c5fc494fefba2aa7c948b11a4739c9296c2a35262ddba803610b47c  -- Final state of a job; null = it has none, or no job.

function weirkeeper.endpoint_checked() returns trigger
  plpgsql volatile
  sha256 0b3b8a9b64e7c99dee72b2e70859250599fe9528b1083201d12f9e95bfb2894a  -- Trigger: checks an endpoint that is made, or of which something is set that its owner sees. 23514.

function weirkeeper.endpoint_key(endpoint_id bigint) returns text
  sql immutable
  sha256 d7f0a8612b4085cb336cb310248e626d843b20e1488a41998d6cde5137a65d87  -- The concurrency key under which deliveries of one endpoint wait.

function weirkeeper.enqueue(kind text, args jsonb DEFAULT '{}'::jsonb, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT NULL::integer, owner_id text DEFAULT NULL::text, awaited boolean DEFAULT NULL::boolean, max_attempts integer DEFAULT NULL::integer, timeout_ms integer DEFAULT NULL::integer, trace text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, unique_by_args boolean DEFAULT false, unique_by text[] DEFAULT NULL::text[], unique_period interval DEFAULT NULL::interval, unique_states text[] DEFAULT NULL::text[], unique_wait boolean DEFAULT true, concurrency_key text DEFAULT NULL::text) returns bigint
  plpgsql volatile
  sha256 3b4502c04456bf20152c5d636ec1d669bb3ffe7455b14dcda75facc5402b7117  -- Adds a job in the caller's transaction; returns its id, or that of the same unique one. WK001, WK002, WK004, WK005.

function weirkeeper.enqueue_many(kind text, args jsonb[], run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT NULL::integer, owner_id text DEFAULT NULL::text, awaited boolean DEFAULT NULL::boolean, max_attempts integer DEFAULT NULL::integer, timeout_ms integer DEFAULT NULL::integer, trace text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, unique_by_args boolean DEFAULT false, unique_by text[] DEFAULT NULL::text[], unique_period interval DEFAULT NULL::interval, unique_states text[] DEFAULT NULL::text[], unique_wait boolean DEFAULT true, concurrency_key text DEFAULT NULL::text) returns bigint[]
  plpgsql volatile
  sha256 e899108fa60202ee5b517b6d106dabb04259669dae611a46a9ceeddcdbf16f79  -- Adds many jobs with the same options, all or none; returns their ids, in order. WK001, WK002, WK004, WK005.

function weirkeeper.enqueue_staged(kind text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT NULL::integer, owner_id text DEFAULT NULL::text, awaited boolean DEFAULT NULL::boolean, max_attempts integer DEFAULT NULL::integer, timeout_ms integer DEFAULT NULL::integer, trace text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, unique_by_args boolean DEFAULT false, unique_by text[] DEFAULT NULL::text[], unique_period interval DEFAULT NULL::interval, unique_states text[] DEFAULT NULL::text[], unique_wait boolean DEFAULT true, concurrency_key text DEFAULT NULL::text) returns bigint[]
  plpgsql volatile
  sha256 f6da6ea5fa3789b2caeac3e1d4544358cad19a283b5e8d47fbc16f538a221783  -- Adds a job for each staged row, in order of n; returns their ids. WK001, WK002, WK004, WK005.

function weirkeeper.enqueue_with_options(kind text, args jsonb, run_at timestamp with time zone, priority integer, owner_id text, awaited boolean, max_attempts integer, timeout_ms integer, trace text, tags text[], expires_at timestamp with time zone, unique_by_args boolean, unique_by text[], unique_period interval, unique_states text[], unique_wait boolean, concurrency_key text) returns bigint
  plpgsql volatile
  sha256 3633a71a3591f90142de66d58e5d5040134c3b0978407c40118ffa10acc42ede  -- Internal: adds a job of which more is to be looked at than enqueue does at once.

function weirkeeper.event_complete() returns trigger
  plpgsql volatile
  sha256 80d5d93067c047b1bc1b20f0e68d550403b82c45ae6ee7dc26c45e6ff65103d3  -- Trigger: checks an event that is recorded and makes it pending. WK002, WK003, 23514.

function weirkeeper.fair_owner(kind text, job_id bigint) returns text
  plpgsql stable
  sha256 e5b766d5c23a2985e46369c274ab4bd151f9d9f7782357cf4f6c3056d0dd36a9  -- Internal: owner by whom a job takes turns; NULL = its kind takes none.

function weirkeeper.fire_periodic(periodic_name text, tick timestamp with time zone, following timestamp with time zone, skip boolean) returns bigint
  plpgsql volatile
  sha256 d51d55dfcd3637bbe9dcfd0849f74ada6abdf796940b7cf27d01291f433919f1  -- Starts the tick that is due, exactly once; returns its job, or null.

function weirkeeper.good_tags(tags text[]) returns boolean
  sql immutable strict
  sha256 620f473a0f44239ebc92c3c148c90be8777be842cd948a0318ccbe1a63c7b31c  -- At most 16 tags of 1 to 64 characters.

function weirkeeper.hold_unique(ids bigint[]) returns TABLE(job_id bigint, held_by bigint)
  plpgsql volatile
  sha256 67be70f92bb97b7ca9c5f4c38b0700a80d4af7fac27990f4c4fbaa25b4e77c89  -- Takes the keys of jobs that are to run again; returns those that may not, and whose key it is.

function weirkeeper.is_moment(moment timestamp with time zone) returns boolean
  sql immutable
  sha256 2e2e2bbcec1bed9919bda723314ad8100569e77fe43cfe274e90c3a6353fda6d  -- Whether a moment is in the years 1 to 9999, which every program can read; NULL for NULL.

function weirkeeper.job_complete() returns trigger
  plpgsql volatile
  sha256 509c97ffb097f8e20bb55715656bb2cabc6dd6ebbc3fcc7895a553d62db6fbca  -- Trigger: fills in and places a job.

function weirkeeper.key_open(name text, open_at timestamp with time zone DEFAULT NULL::timestamp with time zone) returns integer
  plpgsql volatile
  sha256 1bc96e8546a86d16e816f6c419de59e600a5a7d1846e09bdc98ec12cd421662e  -- Starts no job of a key before a moment (infinity: until called again; null: opens it). Commit soon. WK004.

function weirkeeper.lease_endpoint(delivery bigint, lease_seconds double precision, token bigint) returns text
  plpgsql volatile set enable_seqscan=off
  sha256 478709b9d01ee9f5efdcc56e47c2e330f3b8d7f32e5facbf1bcff3030b407f66  -- Takes an endpoint's lease for a delivery: leased, or why not.

function weirkeeper.notified(lock_no integer, channel text) returns boolean
  sql volatile
  sha256 20f74377bc98884644543d85f8b9c64e6d7d77dc0548bc06e5142e3f21d786c5  -- Internal: wakes who sleeps behind a lock, once the caller commits; whether a notice was needed.

function weirkeeper.number_staged(kind text) returns bigint[]
  plpgsql volatile
  sha256 096d268db093c8eed396c13f0f81a98ec7f7a94773352ed76805ebba507914cc  -- Checks staged rows; returns an id for each. WK002.

function weirkeeper.open_endpoint(endpoint bigint) returns void
  plpgsql volatile set enable_seqscan=off
  sha256 2a6d5bd35312fda78f0f027f1bb0e64e517300151727ab7afdbac0019b56f829  -- Tells the concurrency key of an endpoint from when on its deliveries may be claimed.

function weirkeeper.open_keys() returns integer
  plpgsql volatile set enable_seqscan=off
  sha256 1513b7dba738b668589f06908c54295ea964cf6204ff83d8240a5d88a48cdbfc  -- Internal: lets jobs of keys go on whose moment has come; how many.

function weirkeeper.open_staging() returns void
  plpgsql volatile
  sha256 0bd7e8d489387278fb98a1c5b9ca555b234e8d49952aeac94cdc2d5625c401e0  -- Makes pg_temp.weirkeeper_staging (n from 1, args) for COPY, or empties it.

function weirkeeper.overrules_expiry(started_at timestamp with time zone, outcome text, evidence jsonb) returns boolean
  sql immutable
  sha256 3b160fc688e6082056584db3a9cc281cda2b424f00a6a9beeea4c6b957b91870  -- Internal: whether an entry of the log tells of a try, or of a retry by hand; not so, or NULL: of neither.

function weirkeeper.pause(queue text DEFAULT NULL::text, kind text DEFAULT NULL::text) returns boolean
  plpgsql volatile
  sha256 749ed5e4a8725e5bd823f47b7fa69b7bfd8b754495c71db13f21c4f22a3cd7fd  -- Starts no more jobs of a queue or kind; true = it was not paused. WK004, WK006.

function weirkeeper.place_jobs(ids bigint[], declared weirkeeper.kind, priority integer, run_at timestamp with time zone, expires_at timestamp with time zone, owner_id text) returns void
  plpgsql volatile
  sha256 848ba3d311812caab944bf13742eee2c54bde553e62035968d2eecd72515e37f  -- Puts new jobs of one kind where they wait, in order.

function weirkeeper.prunable(ids bigint[], completed_before timestamp with time zone, ended_before timestamp with time zone) returns bigint[]
  sql stable
  sha256 4c04b06e12f02494955eb2677e63e91880fe2f9970c4b8f26aec2bd8c666de48  -- Internal: of these jobs, those that retention may remove.

function weirkeeper.prune_events(after_at timestamp with time zone, after_id uuid, size integer, before timestamp with time zone, OUT upto_at timestamp with time zone, OUT upto_id uuid, OUT pruned integer, OUT more boolean) returns record
  plpgsql volatile set enable_seqscan=off
  sha256 4f251083b6e2e1af0b2eadd12c4341a22566cdfafb205e50444aeb145fe5ee33  -- Removes events of one page with their fan-out. more: go on behind (upto_at, upto_id).

function weirkeeper.prune_jobs(after bigint, size integer, completed_before timestamp with time zone, ended_before timestamp with time zone, OUT upto bigint, OUT pruned integer, OUT more boolean) returns record
  plpgsql volatile set enable_seqscan=off
  sha256 fd9bf9e1589b67a6d6dad543c1f5cc43ecb1ff9e6b763c277118a8bebb9f7e05  -- Removes ended jobs of one page with their log and uniqueness. more: go on behind upto.

function weirkeeper.prune_keys(size integer) returns integer
  plpgsql volatile set enable_seqscan=off
  sha256 368da35d96b8536f90cd196472eb1cf3837bab42a21afa91c2fcfbe633b83dfb  -- Removes concurrency keys that nobody uses; how many.

function weirkeeper.quarantine(kind text, why text) returns boolean
  plpgsql volatile
  sha256 e21d1229c86dd7bf88bc96aaff2cb6403a81db3fff2cbc2c673b3cba0906ac94  -- Starts no more jobs of a kind that kills its children; true = it was not paused. resume lifts it.

function weirkeeper.rate_room(kind_name text, OUT room integer, OUT opens double precision) returns record
  plpgsql volatile set enable_seqscan=off
  sha256 461d14bb25457af56f1cdb64626f9ff6dafc0168e7e8113f2f351c1917bd1400  -- Internal: locks a kind; how many more may start now, else in how many seconds. NULL = it has no rate.

function weirkeeper.record_event(type text, owner_id text DEFAULT NULL::text, subject text DEFAULT ''::text, data jsonb DEFAULT '{}'::jsonb, trace text DEFAULT NULL::text) returns uuid
  plpgsql volatile
  sha256 0c24a28b1c3b5a6fcee8e9fefab31395c0ed455a73a6e59617e9066edfe90f40  -- Records an event in the caller's transaction; returns its id. WK002, WK003.

function weirkeeper.recount_starts(kind_name text) returns integer
  plpgsql volatile set enable_seqscan=off
  sha256 a90a00bc8379eaade24eb9dc5bc269bee8568e1e597837ef474ccceafe8a6af9  -- Internal: locks a kind; makes the totals of its starts anew. How many rows were changed.

function weirkeeper.release_unique(ids bigint[], state text DEFAULT NULL::text) returns bigint
  sql volatile set enable_seqscan=off
  sha256 bad5af3708b8a9c0697e47bfc758f79589d2270323f24b0c6f8fa64395ecbd0a  -- Releases the keys of jobs that became discarded or cancelled (unless they keep them), or go (null).

function weirkeeper.replay_batch(replay_id bigint, size integer, OUT left_over bigint) returns bigint
  plpgsql volatile
  sha256 407ae6f4c30eee00f44d889fc863f5b1f099796cdb32152f9ed682f68c740a0e  -- Internal: delivers the next events of a replay; how many are left. 0 when it was cancelled.

function weirkeeper.replayable(subscription text, types text[], since timestamp with time zone, until timestamp with time zone) returns TABLE(event_id uuid, seq bigint)
  sql stable
  sha256 b7fc3bddca27e1a492843288a860fb104406c038be6830cece7ee18938edde64  -- Internal: the events of a replay's plan.

function weirkeeper.requeue_events(ids uuid[] DEFAULT NULL::uuid[]) returns SETOF uuid
  plpgsql volatile set enable_seqscan=off, enable_bitmapscan=off
  sha256 097981d14f111a182431cc5dd3c465e9bb7b6eb420ea5b155e5f0072ce38f549  -- Has the relay try events again whose fan-out failed, their count cleared; null = every poisoned one.

function weirkeeper.resume(queue text DEFAULT NULL::text, kind text DEFAULT NULL::text) returns boolean
  plpgsql volatile
  sha256 0d05a0a6d490ff010770810a85fc28a4fd9d19d5d6e12d181635638d89d8092b  -- Starts jobs of a queue or kind again, at once; true = it was paused. WK004, WK006.

function weirkeeper.retry_jobs(ids bigint[]) returns TABLE(job_id bigint, state text, changed boolean, held_by bigint)
  plpgsql volatile set enable_seqscan=off, enable_hashjoin=off, enable_mergejoin=off
  sha256 1331d1f28c1688e266d8618012c06f1e8c3278091c87f61b1757b35848c6b006  -- Runs jobs once more: scheduled, discarded and cancelled ones. Others stay.

function weirkeeper.run_periodic(periodic_name text) returns bigint
  plpgsql volatile
  sha256 942031fdc36bd0beeff3bf4e336afa57352a89c0e37dbcfe82d981018832c761  -- Enqueues an extra run of a periodic, beside its schedule; returns the job, null = no such name.

function weirkeeper.settle_delivery(delivery bigint, token bigint, result text, code text, delay double precision, pause double precision, disable text, status integer, phases jsonb, headers jsonb, body bytea, truncated boolean, peer text, url text, started_at timestamp with time zone) returns TABLE(held boolean, attempts integer, disabled text, notice integer)
  plpgsql volatile set enable_seqscan=off
  sha256 12edde806fecb02eb4bffdba0349149486c59ff36128399c9c27a310ef190a99  -- Writes a request's outcome and gives the lease back, if the token still holds it.

function weirkeeper.skip_event(id uuid) returns boolean
  plpgsql volatile
  sha256 93bb904bc16fe26a33296c15be111ca4c8f74732296ebf2926f45e758d58f34a  -- Gives up an event that the relay could not fan out; false = it is not such a one.

function weirkeeper.start_periodic(started weirkeeper.periodic, tick timestamp with time zone, extra boolean) returns bigint
  plpgsql volatile
  sha256 9fd9eb545827907292012ab236456280b3d4244d2f128ac32edb5eb8750d706f  -- Internal: one job for one tick; not retried, ended after the periodic's timeout.

function weirkeeper.start_replay(subscription text, types text[], since timestamp with time zone, until timestamp with time zone, planned bigint, asked_by text DEFAULT NULL::text) returns bigint
  plpgsql volatile
  sha256 5504fd8a7d3a2520328145fbd8b25eaabf851bd3bc47c5d13a02dbed0e3d4e68  -- Begins a replay of exactly as many events as were planned; its id. WK007.

function weirkeeper.stuck_keys() returns SETOF text
  sql stable set enable_seqscan=off
  sha256 8a36928aa43293c76c72fb961755ad59bb18f38c9933c09d099d4e8ae197e9e5  -- Internal: keys that are open and have a place and a parked job.

function weirkeeper.take_delivery(delivery bigint, lease_seconds double precision, token bigint) returns TABLE(answer text, event_id text, event_type text, body bytea, attempts integer, owner_id text, trigger text, begun_at timestamp with time zone, endpoint_id text, url text, headers jsonb, format text, signature text, schedule double precision[], ordering text, seconds double precision, sealed bytea[])
  plpgsql volatile set enable_seqscan=off
  sha256 c0aef0269f863101ba5fbeb2783da065634b6ae878549b5c1a0c170142531748  -- Takes an endpoint's lease for a delivery and tells what to send where; else why not.

function weirkeeper.take_over(hashes bytea[], ids bigint[]) returns boolean
  plpgsql volatile set enable_seqscan=off, enable_hashjoin=off, enable_mergejoin=off
  sha256 e03997b2f80adc826685d596aaad30bee18c12d5dc8ab0131cc220c43c105514  -- Gives the keys of completed jobs that do not keep them to new ones; whether there were any.

function weirkeeper.take_unique(hashes bytea[], ids bigint[]) returns bigint[]
  plpgsql volatile set enable_seqscan=off
  sha256 6044409622b15469f899aff3053216485d04163a92dca7c33f69c79495752f44  -- Takes the keys of unique jobs; returns who holds each. May wait; 40001, 40P01.

function weirkeeper.take_unique_at_once(hashes bytea[], ids bigint[]) returns bigint[]
  plpgsql volatile set lock_timeout=20ms
  sha256 294472e86d65a574676ec6f3be83eed7d39fa9cfc665b496b8d73293c6635208  -- As take_unique, but raises WK005 where that would wait.

function weirkeeper.tell_final(ids bigint[]) returns integer
  plpgsql volatile
  sha256 2c5bc2784a9eb3ab4b78b478e408dae31b63c9d09c52af13ad0956477aafb12d  -- Tells waiters that these jobs are final.

function weirkeeper.unique_hash(kind text, args jsonb, keys text[] DEFAULT NULL::text[], period interval DEFAULT NULL::interval) returns bytea
  sql volatile
  sha256 a38571a75c12083ca150b4aa8b727e4cd2c5c341045269bad76ce2667e3201b5  -- Key of a unique job: of its kind and args, or of some of their keys, within a period.

function weirkeeper.unpark(names text[]) returns integer
  plpgsql volatile set enable_seqscan=off
  sha256 7882767ce8a6ad1a9f998256fdf2b2ef925da22650f0028fe70d1b7d46968b75  -- Lets the next jobs of these keys go on, after places were given up; how many. NULL for none.

function weirkeeper.wake(lock_no integer, channel text) returns void
  plpgsql volatile
  sha256 f3e201c4d75fa26b3db395aa97099b8cd5c2dfbeb3cf2979ca77dd79b8d2e291  -- Wakes a consumer if it sleeps, silently binds it to look if it does not.

function weirkeeper.wake_queue(queue_name text) returns void
  sql volatile
  sha256 315e96b976d09c27b366d67fba601614f919f22dbc1bd521bc452a5f3c131e49  -- Wakes the processes of one queue.
