-- Webhooks: endpoints and their secrets, deliveries and what came of each attempt, replays.
-- breaking: no

create table weirkeeper.endpoint (
  id bigint primary key generated always as identity,
  owner_id text not null check (length(owner_id) between 1 and 200),
  url text not null check (length(url) between 1 and 2048),
  description text not null default '' check (length(description) <= 500),
  event_types text[] not null check (cardinality(event_types) between 1 and 100),
  headers jsonb not null default '{}' check (jsonb_typeof(headers) = 'object'),
  format text not null default 'standard' check (format in ('standard', 'cloudevents')),
  signature text not null default 'v1' check (signature in ('v1', 'v1a')),
  ordering text not null default 'none' check (ordering in ('none', 'strict')),
  rate integer check (rate between 1 and 6000),  -- requests a minute
  schedule double precision[] check (cardinality(schedule) between 1 and 30),
  enabled boolean not null default true,
  disabled_reason text check (disabled_reason in ('manual', 'gone', 'failing', 'blocked')),
  disabled_at timestamptz,
  failing_since timestamptz,
  failures integer not null default 0 check (failures >= 0),  -- since failing_since
  noticed smallint not null default 0 check (noticed in (0, 50, 100)),  -- percent, told by mail
  last_success_at timestamptz,
  busy_until timestamptz,
  lease_token bigint,
  not_before timestamptz,
  tested_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  check (enabled = (disabled_reason is null)),
  check (enabled = (disabled_at is null)),
  check ((busy_until is null) = (lease_token is null)),
  check ((failing_since is null) = (failures = 0))
) with (fillfactor = 70);
create index endpoint_owner on weirkeeper.endpoint (owner_id, id);
comment on table weirkeeper.endpoint is
  'Where an owner''s events are sent, its lease and how it fares. No events: a receiver, not a fact.';

create table weirkeeper.endpoint_secret (
  endpoint_id bigint not null references weirkeeper.endpoint on delete cascade,
  no bigint not null generated always as identity,  -- the newest signs first
  sealed bytea not null,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz,  -- null: the current one
  primary key (endpoint_id, no)
);
comment on table weirkeeper.endpoint_secret is
  'Signing secrets, sealed; those that were rotated away sign until they expire. No events: secrets.';

create table weirkeeper.delivery (
  id bigint primary key generated always as identity,
  endpoint_id bigint not null references weirkeeper.endpoint on delete cascade,
  event_id uuid not null,
  event_seq bigint not null,
  event_type text not null,
  owner_id text not null,
  body bytea not null,  -- as it is signed and sent, the same at each attempt
  trigger text not null check (trigger in ('auto', 'test', 'replay', 'manual')),
  state text not null default 'pending'
    check (state in ('pending', 'delivered', 'failed', 'cancelled')),
  job_id bigint,
  attempts integer not null default 0 check (attempts >= 0),  -- of this round
  tries integer not null default 0 check (tries >= attempts),  -- of all rounds
  next_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  begun_at timestamptz not null default clock_timestamp(),  -- this round
  ended_at timestamptz,
  unique (endpoint_id, event_id),
  check ((state = 'pending') = (ended_at is null))
);
create index delivery_page on weirkeeper.delivery (endpoint_id, event_seq);
create index delivery_event on weirkeeper.delivery (event_id);
create index delivery_pending on weirkeeper.delivery (endpoint_id, event_seq)
  where state = 'pending';
create index delivery_ended on weirkeeper.delivery (ended_at) where ended_at is not null;
comment on table weirkeeper.delivery is
  'One event on its way to one endpoint. No events: the log of what was sent.';

create table weirkeeper.delivery_attempt (
  delivery_id bigint not null references weirkeeper.delivery on delete cascade,
  number integer not null check (number >= 1),
  trigger text not null check (trigger in ('auto', 'test', 'replay', 'manual', 'probe')),
  started_at timestamptz not null,
  finished_at timestamptz not null default clock_timestamp(),
  url text not null,
  result text not null check (result in ('delivered', 'failed', 'deferred')),
  code text not null,  -- of closed lists: shared/webhooks/answers.py, codes.py
  status integer,
  phases jsonb not null default '{}',  -- milliseconds: dns, connect, tls, write, ttfb, body
  headers jsonb not null default '[]',
  body bytea,
  truncated boolean not null default false,
  peer text,  -- for the operator's eyes alone
  primary key (delivery_id, number)
);
comment on table weirkeeper.delivery_attempt is
  'One request to an endpoint and its answer. No events: the log of what was sent.';

create table weirkeeper.webhook_replay (
  id bigint primary key generated always as identity,
  endpoint_id bigint not null references weirkeeper.endpoint on delete cascade,
  owner_id text not null,
  since timestamptz not null,
  until timestamptz not null,
  failed_only boolean not null,
  state text not null default 'planned'
    check (state in ('planned', 'running', 'finished', 'cancelled')),
  total bigint not null,
  sent bigint not null default 0,
  after_seq bigint not null default 0,
  job_id bigint,
  created_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  check (since < until)
);
create index webhook_replay_endpoint on weirkeeper.webhook_replay (endpoint_id, id);
comment on table weirkeeper.webhook_replay is
  'Events that are sent to an endpoint once more, and how far it has come. No events: bookkeeping.';

-- The name of the concurrency key of an endpoint's deliveries.
create function weirkeeper.endpoint_key(endpoint_id bigint) returns text
language sql immutable return 'webhook:' || endpoint_id;
comment on function weirkeeper.endpoint_key is
  'The concurrency key under which deliveries of one endpoint wait.';

-- Takes the lease of a delivery's endpoint, if it is to be had. The lease, not the concurrency key,
-- is what promises at most one request in flight: it holds across lost claims and dead processes.
-- clock_timestamp(), never now(): a wait for the row's lock must not eat the lease.
create function weirkeeper.lease_endpoint(
  delivery bigint, lease_seconds double precision, token bigint
) returns text
language plpgsql as $$
declare
  d weirkeeper.delivery;
  e weirkeeper.endpoint;
begin
  select * into d from weirkeeper.delivery where id = lease_endpoint.delivery;
  if not found then
    return 'gone';
  end if;
  select * into e from weirkeeper.endpoint where id = d.endpoint_id for update;
  if not found then
    return 'gone';
  end if;
  select * into d from weirkeeper.delivery where id = lease_endpoint.delivery;  -- under the lock
  if d.state <> 'pending' then
    return 'ended';
  elsif not e.enabled then
    return 'disabled';
  elsif e.busy_until >= clock_timestamp() then
    return 'busy';
  elsif e.not_before > clock_timestamp() and d.trigger not in ('test', 'manual') then
    return 'paused';
  elsif d.next_at > clock_timestamp() then
    return 'early';
  elsif e.ordering = 'strict' and exists (
    select from weirkeeper.delivery o
    where o.endpoint_id = e.id and o.state = 'pending' and o.event_seq < d.event_seq
  ) then
    return 'behind';
  end if;
  update weirkeeper.endpoint
  set busy_until = clock_timestamp() + make_interval(secs => lease_seconds),
      lease_token = lease_endpoint.token
  where id = e.id;
  return 'leased';
end $$;
comment on function weirkeeper.lease_endpoint is
  'Takes an endpoint''s lease for a delivery: leased, or why not.';

-- When deliveries of an endpoint may be claimed again: not while it is disabled or asked for a pause,
-- not faster than its rate, and, where order is kept, not before the head's next try.
create function weirkeeper.open_endpoint(endpoint bigint) returns void
language plpgsql as $$
declare
  e weirkeeper.endpoint;
begin
  select * into e from weirkeeper.endpoint where id = open_endpoint.endpoint;
  perform weirkeeper.key_open(weirkeeper.endpoint_key(e.id), case
    when not e.enabled then 'infinity'
    else greatest(
      '-infinity', e.not_before,
      case when e.rate is not null
           then clock_timestamp() + make_interval(secs => 60.0 / e.rate) end,
      case when e.ordering = 'strict' then (
        select d.next_at from weirkeeper.delivery d
        where d.endpoint_id = e.id and d.state = 'pending'
        order by d.event_seq limit 1) end)
    end);
end $$;
comment on function weirkeeper.open_endpoint is
  'Tells the concurrency key of an endpoint from when on its deliveries may be claimed.';

-- Writes what came of a request: the attempt's row, the delivery's counters and the endpoint's state,
-- and gives the lease back; nothing at all if another holds the lease by now.
create function weirkeeper.settle_delivery(
  delivery bigint,
  token bigint,
  result text,
  code text,
  delay double precision,  -- seconds to the next try; null: there is none
  pause double precision,  -- seconds in which the endpoint gets nothing; null: none
  disable text,  -- why the endpoint is disabled; null: it is not
  status integer,
  phases jsonb,
  headers jsonb,
  body bytea,
  truncated boolean,
  peer text,
  url text,
  started_at timestamptz
) returns table (held boolean, attempts integer, disabled text, notice integer)
language plpgsql as $$
#variable_conflict use_variable
declare
  d weirkeeper.delivery;
  e weirkeeper.endpoint;
  moment timestamptz;
  window_used double precision;
begin
  select * into d from weirkeeper.delivery o where o.id = delivery;
  select * into e from weirkeeper.endpoint o
  where o.id = d.endpoint_id and o.lease_token = token for update;
  if not found then
    held := false;
    return next;
    return;
  end if;
  moment := clock_timestamp();
  insert into weirkeeper.delivery_attempt
    (delivery_id, number, trigger, started_at, finished_at, url, result, code, status, phases,
     headers, body, truncated, peer)
  values
    (delivery, d.tries + 1, d.trigger, started_at, moment, url, result, code, status, phases,
     headers, body, truncated, peer);
  update weirkeeper.delivery o
  set tries = o.tries + 1,
      attempts = o.attempts + (result <> 'deferred')::integer,
      state = case when result = 'delivered' then 'delivered'
                   when delay is null then 'failed' else 'pending' end,
      next_at = moment + make_interval(secs => delay),
      ended_at = case when delay is null then moment end
  where o.id = delivery
  returning o.attempts into attempts;

  e.busy_until := null;
  e.lease_token := null;
  if result = 'delivered' then
    e.last_success_at := moment;
    e.failing_since := null;
    e.failures := 0;
    e.noticed := 0;
  elsif result = 'failed' then
    e.failing_since := coalesce(e.failing_since, moment);
    e.failures := e.failures + 1;
    window_used := extract(epoch from moment - e.failing_since) / (5 * 86400.0);
    if window_used >= 1 and e.failures >= 10 then
      disable := coalesce(disable, 'failing');
    elsif window_used >= 0.5 and e.failures >= 5 and e.noticed = 0 then
      e.noticed := 50;
      notice := 50;
    end if;
  end if;
  if pause is not null then
    e.not_before := greatest(e.not_before, moment + make_interval(secs => pause));
  end if;
  if disable is not null and e.enabled then
    e.enabled := false;
    e.disabled_reason := disable;
    e.disabled_at := moment;
    e.noticed := 100;
    notice := 100;
    disabled := disable;
  end if;
  update weirkeeper.endpoint o
  set busy_until = e.busy_until, lease_token = e.lease_token, last_success_at = e.last_success_at,
      failing_since = e.failing_since, failures = e.failures, noticed = e.noticed,
      not_before = e.not_before, enabled = e.enabled, disabled_reason = e.disabled_reason,
      disabled_at = e.disabled_at
  where o.id = e.id;
  perform weirkeeper.open_endpoint(e.id);
  if notice is not null then
    perform weirkeeper.record_event(
      case when e.enabled then 'webhook.endpoint.failing' else 'webhook.endpoint.disabled' end,
      e.owner_id, 'webhook://' || e.id,
      jsonb_build_object('endpoint_id', e.id::text, 'reason', e.disabled_reason,
                         'code', code, 'status', status, 'failures', e.failures));
  end if;
  held := true;
  return next;
end $$;
comment on function weirkeeper.settle_delivery is
  'Writes a request''s outcome and gives the lease back, if the token still holds it.';

create function weirkeeper.enable_endpoint(endpoint bigint) returns void
language plpgsql as $$
begin
  update weirkeeper.endpoint
  set enabled = true, disabled_reason = null, disabled_at = null, failing_since = null,
      failures = 0, noticed = 0, not_before = null, updated_at = clock_timestamp()
  where id = enable_endpoint.endpoint;
  perform weirkeeper.open_endpoint(enable_endpoint.endpoint);
end $$;
comment on function weirkeeper.enable_endpoint is
  'Enables an endpoint with a fresh window of failures, and lets its deliveries go.';

create function weirkeeper.disable_endpoint(endpoint bigint, reason text) returns void
language plpgsql as $$
begin
  update weirkeeper.endpoint
  set enabled = false, disabled_reason = reason, disabled_at = clock_timestamp(),
      updated_at = clock_timestamp()
  where id = disable_endpoint.endpoint and enabled;
  perform weirkeeper.open_endpoint(disable_endpoint.endpoint);
end $$;
comment on function weirkeeper.disable_endpoint is
  'Disables an endpoint; its deliveries are held until it is enabled.';

-- Adds a delivery with its job, or sends one that is there once more. Of two that add the same, one
-- adds it; one that is on its way already stays as it is.
create function weirkeeper.deliver(
  endpoint bigint, event uuid, body bytea, trigger text, priority integer default null
) returns bigint
language plpgsql as $$
#variable_conflict use_variable
declare
  e weirkeeper.event;
  known weirkeeper.delivery;
  new_id bigint;
  job bigint;
begin
  select * into known from weirkeeper.delivery d
  where d.endpoint_id = endpoint and d.event_id = event for update;
  if known.state = 'pending' or known.id is not null and trigger in ('auto', 'test') then
    return null;
  end if;
  if known.id is null then
    select * into e from weirkeeper.event v where v.id = event;
    insert into weirkeeper.delivery
      (endpoint_id, event_id, event_seq, event_type, owner_id, body, trigger)
    values (endpoint, event, e.seq, e.type, e.owner_id, body, trigger)
    on conflict (endpoint_id, event_id) do nothing
    returning id into new_id;
  else
    update weirkeeper.delivery d
    set state = 'pending', ended_at = null, next_at = null, attempts = 0, begun_at = clock_timestamp(),
        trigger = deliver.trigger
    where d.id = known.id;
    new_id := known.id;
    select * into e from weirkeeper.event v where v.id = event;
  end if;
  if new_id is null then
    return null;
  end if;
  job := weirkeeper.enqueue(
    'webhook.deliver', jsonb_build_object('delivery_id', new_id::text),
    owner_id => coalesce(e.owner_id, known.owner_id), priority => priority, trace => e.trace,
    concurrency_key => weirkeeper.endpoint_key(endpoint));
  update weirkeeper.delivery d set job_id = job where d.id = new_id;
  return new_id;
end $$;
comment on function weirkeeper.deliver is
  'Puts an event on its way to an endpoint; returns the delivery''s id, or null if it is already.';
