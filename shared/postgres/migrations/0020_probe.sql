-- A disabled endpoint is probed: the oldest delivery that it holds may be sent, and a success enables it.
-- breaking: no

alter table weirkeeper.endpoint
  add column probing bigint,  -- the delivery that may be sent although it is disabled
  add column probed_at timestamptz;
create index endpoint_failing on weirkeeper.endpoint (id) where disabled_reason = 'failing';

-- As before, and a probe has the lease of an endpoint that is disabled for its failures.
create or replace function weirkeeper.lease_endpoint(
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
  elsif not e.enabled
        and not coalesce(e.disabled_reason = 'failing' and e.probing = d.id, false) then
    return 'disabled';
  elsif e.busy_until >= clock_timestamp() then
    return 'busy';
  elsif e.not_before > clock_timestamp() and d.trigger not in ('test', 'manual') then
    return 'paused';
  elsif e.enabled and d.next_at > clock_timestamp() then
    return 'early';
  elsif e.ordering = 'strict' and exists (
    select from weirkeeper.delivery o
    where o.endpoint_id = e.id and o.state = 'pending' and o.job_id < d.job_id
  ) then
    return 'behind';
  end if;
  update weirkeeper.endpoint
  set busy_until = clock_timestamp() + make_interval(secs => lease_seconds),
      lease_token = lease_endpoint.token
  where id = e.id;
  return 'leased';
end $$;

-- The answer to a request is worth no wait for the disk: its job is finished after it, so what a crash
-- takes back is sent again, under the same id. A lease is waited for: a crash must not hand it out twice.
-- Else as before; a probe spends no attempt and ends nothing, and its success enables the endpoint; what
-- is answered after its delivery was ended changes it no more, unless it arrived.
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
  probe boolean;
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
  probe := coalesce(e.disabled_reason = 'failing' and e.probing = delivery, false);
  insert into weirkeeper.delivery_attempt
    (delivery_id, number, trigger, started_at, finished_at, url, result, code, status, phases,
     headers, body, truncated, peer)
  values
    (delivery, d.tries + 1, case when probe then 'probe' else d.trigger end, started_at,
     moment, url, result, code, status, phases,
     headers, body, truncated, peer);
  update weirkeeper.delivery o
  set tries = o.tries + 1,
      attempts = o.attempts + (result <> 'deferred' and not probe)::integer,
      state = case when result = 'delivered' then 'delivered'
                   when o.state <> 'pending' then o.state  -- ended under its request, and stays so
                   when delay is null and not probe then 'failed' else 'pending' end,
      next_at = case when o.state = 'pending' then moment + make_interval(secs => delay) end,
      ended_at = case when result = 'delivered' then moment
                      when o.state <> 'pending' then o.ended_at
                      when delay is null and not probe then moment end
  where o.id = delivery
  returning o.attempts into attempts;

  e.busy_until := null;
  e.lease_token := null;
  e.probing := null;
  if result = 'delivered' then
    e.last_success_at := moment;
    e.failing_since := null;
    e.failures := 0;
    e.noticed := 0;
    if probe then
      e.enabled := true;
      e.disabled_reason := null;
      e.disabled_at := null;
      e.not_before := null;
    end if;
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
  if disable is not null and (e.enabled or probe and disable = 'gone') then
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
      disabled_at = e.disabled_at, probing = e.probing
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
