-- A delivery in two round trips: taken with all that is read under the lease, and settled.
-- breaking: no

-- One call instead of five round trips; what is read comes after the lock, so that an edit holds from
-- the next attempt on.
create function weirkeeper.take_delivery(
  delivery bigint, lease_seconds double precision, token bigint
) returns table (
  answer text, event_id text, event_type text, body bytea, attempts integer, owner_id text,
  trigger text, begun_at timestamptz, endpoint_id text, url text, headers jsonb, format text,
  signature text, schedule double precision[], seconds double precision, sealed bytea[]
)
language plpgsql as $$
#variable_conflict use_column
begin
  answer := weirkeeper.lease_endpoint(delivery, lease_seconds, token);
  if answer <> 'leased' then
    return next;
    return;
  end if;
  return query
  select take_delivery.answer, d.event_id::text, d.event_type, d.body, d.attempts, d.owner_id,
         d.trigger, d.begun_at, e.id::text, e.url, e.headers, e.format, e.signature, e.schedule,
         extract(epoch from e.busy_until - clock_timestamp())::double precision,
         array(select s.sealed from weirkeeper.endpoint_secret s
               where s.endpoint_id = e.id
                 and (s.expires_at is null or s.expires_at > clock_timestamp())
               order by s.no desc limit 5)  -- at most five are live; the newest signs first
  from weirkeeper.delivery d
  join weirkeeper.endpoint e on e.id = d.endpoint_id
  where d.id = take_delivery.delivery;
end $$;
comment on function weirkeeper.take_delivery is
  'Takes an endpoint''s lease for a delivery and tells what to send where; else why not.';

-- As before, and without a lock on the key when nothing changes for it: the usual end of a delivery.
-- The job that settles holds its place of the key until it is finished, which calls the next one.
create or replace function weirkeeper.open_endpoint(endpoint bigint) returns void
language plpgsql as $$
declare
  e weirkeeper.endpoint;
  wanted timestamptz;
  known timestamptz;
begin
  select * into e from weirkeeper.endpoint where id = open_endpoint.endpoint;
  wanted := case
    when not e.enabled then 'infinity'
    else greatest(
      '-infinity', e.not_before,
      case when e.rate is not null
           then clock_timestamp() + make_interval(secs => 60.0 / e.rate) end,
      case when e.ordering = 'strict' then (
        select d.next_at from weirkeeper.delivery d
        where d.endpoint_id = e.id and d.state = 'pending'
        order by d.event_seq limit 1) end)
    end;
  select k.open_at into known from weirkeeper.key k
  where k.name = weirkeeper.endpoint_key(e.id);
  if wanted > clock_timestamp() or known > '-infinity' then
    perform weirkeeper.key_open(weirkeeper.endpoint_key(e.id), wanted);
  end if;
end $$;

-- The answer to a request is worth no wait for the disk: its job is finished after it, so what a crash
-- takes back is sent again, under the same id. A lease is waited for: a crash must not hand it out twice.
create or replace function weirkeeper.settle_delivery(
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
  else
    perform set_config('synchronous_commit', 'off', true);  -- of this transaction
  end if;
  held := true;
  return next;
end $$;

-- One index for both: of an event, and once an endpoint.
alter table weirkeeper.delivery
  add constraint delivery_event_id_endpoint_id_key unique (event_id, endpoint_id),
  drop constraint delivery_endpoint_id_event_id_key;
drop index weirkeeper.delivery_event;
