-- A delivery costs the database half as much: fewer statements within its functions, and no checks that
-- Postgres reads anew for each of them.
-- breaking: no

-- Postgres reads the text of every CHECK of a table for each statement that changes a row: the eighteen
-- of an endpoint cost a lease, and a settle, more than all else that they write. What an owner sets is
-- checked when it is set; what a delivery changes is changed by functions of this schema alone.
alter table weirkeeper.endpoint
  drop constraint endpoint_owner_id_check,
  drop constraint endpoint_url_check,
  drop constraint endpoint_description_check,
  drop constraint endpoint_event_types_check,
  drop constraint endpoint_headers_check,
  drop constraint endpoint_format_check,
  drop constraint endpoint_signature_check,
  drop constraint endpoint_ordering_check,
  drop constraint endpoint_rate_check,
  drop constraint endpoint_schedule_check,
  drop constraint endpoint_disabled_reason_check,
  drop constraint endpoint_failures_check,
  drop constraint endpoint_noticed_check,
  drop constraint endpoint_contact_check,
  drop constraint endpoint_check,
  drop constraint endpoint_check1,
  drop constraint endpoint_check2,
  drop constraint endpoint_check3;

alter table weirkeeper.delivery
  drop constraint delivery_attempts_check,
  drop constraint delivery_check,
  drop constraint delivery_check1,
  drop constraint delivery_state_check,
  drop constraint delivery_trigger_check;
alter table weirkeeper.delivery_attempt
  drop constraint delivery_attempt_number_check,
  drop constraint delivery_attempt_result_check,
  drop constraint delivery_attempt_trigger_check;

create function weirkeeper.endpoint_checked() returns trigger
language plpgsql as $$
declare
  wrong text := case
    when not length(new.owner_id) between 1 and 200 then 'owner_id'
    when not length(new.url) between 1 and 2048 then 'url'
    when length(new.description) > 500 then 'description'
    when not cardinality(new.event_types) between 1 and 100 then 'event_types'
    when jsonb_typeof(new.headers) <> 'object' then 'headers'
    when new.format not in ('standard', 'cloudevents') then 'format'
    when new.signature not in ('v1', 'v1a') then 'signature'
    when new.ordering not in ('none', 'strict') then 'ordering'
    when not new.rate between 1 and 6000 then 'rate'
    when not cardinality(new.schedule) between 1 and 30 then 'schedule'
    when not length(new.contact) between 3 and 254 then 'contact'
    when new.disabled_reason not in ('manual', 'gone', 'failing', 'blocked')
         or new.enabled <> (new.disabled_reason is null) or new.enabled <> (new.disabled_at is null)
      then 'enabled, disabled_reason, disabled_at'
    when (new.busy_until is null) <> (new.lease_token is null) then 'busy_until, lease_token'
    when new.failures < 0 or (new.failing_since is null) <> (new.failures = 0)
         or new.noticed not in (0, 50, 100) then 'failures, failing_since, noticed'
  end;
begin
  if wrong is not null then
    raise exception using errcode = '23514', message = format(
      'endpoint: expected values of %s that it can have; use the functions and operations of webhooks', wrong);
  end if;
  return new;
end $$;
comment on function weirkeeper.endpoint_checked is
  'Trigger: checks an endpoint that is made, or of which something is set that its owner sees. 23514.';
create trigger endpoint_checked
  before insert or update of owner_id, url, description, event_types, headers, format, signature,
    ordering, rate, schedule, contact, enabled, disabled_reason, disabled_at, failing_since, failures
  on weirkeeper.endpoint for each row execute function weirkeeper.endpoint_checked();

-- As before, and what is usual is one statement under the lock; `lease_endpoint` has all the rest, and says
-- why there is no lease.
-- A session plans a function's statements once. While few deliveries are pending their index is the
-- smallest of the table, and a look-up by id was planned as a walk through it: 40,000 pages for a lease
-- when 10,000 waited for another endpoint. While there are few endpoints, reading all was the plan.
create or replace function weirkeeper.take_delivery(
  delivery bigint, lease_seconds double precision, token bigint
) returns table (
  answer text, event_id text, event_type text, body bytea, attempts integer, owner_id text,
  trigger text, begun_at timestamptz, endpoint_id text, url text, headers jsonb, format text,
  signature text, schedule double precision[], ordering text, seconds double precision, sealed bytea[]
)
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  target bigint;
begin
  select e.id into target from weirkeeper.endpoint e
  where e.id = (select d.endpoint_id from weirkeeper.delivery d where d.id = take_delivery.delivery)
  for update;
  return query
  update weirkeeper.endpoint e
  set busy_until = clock_timestamp() + make_interval(secs => lease_seconds),
      lease_token = take_delivery.token
  from weirkeeper.delivery d
  where d.id = take_delivery.delivery and e.id = target
    and coalesce(d.state = 'pending', false)  -- spelt so that no index of pending ones can be used
    and e.enabled and e.ordering = 'none'
    and coalesce(e.busy_until < clock_timestamp(), true)
    and coalesce(e.not_before <= clock_timestamp(), true)
    and coalesce(d.next_at <= clock_timestamp(), true)
  returning 'leased', d.event_id::text, d.event_type, d.body, d.attempts, d.owner_id,
            d.trigger, d.begun_at, e.id::text, e.url, e.headers, e.format, e.signature, e.schedule,
            e.ordering, lease_seconds,
            array(select s.sealed from weirkeeper.endpoint_secret s
                  where s.endpoint_id = e.id
                    and (s.expires_at is null or s.expires_at > clock_timestamp())
                  order by s.no desc limit 5);
  if found then
    return;
  end if;
  answer := weirkeeper.lease_endpoint(delivery, lease_seconds, token);
  if answer <> 'leased' then
    return next;
    return;
  end if;
  return query
  select take_delivery.answer, d.event_id::text, d.event_type, d.body, d.attempts, d.owner_id,
         d.trigger, d.begun_at, e.id::text, e.url, e.headers, e.format, e.signature, e.schedule, e.ordering,
         extract(epoch from e.busy_until - clock_timestamp())::double precision,
         array(select s.sealed from weirkeeper.endpoint_secret s
               where s.endpoint_id = e.id
                 and (s.expires_at is null or s.expires_at > clock_timestamp())
               order by s.no desc limit 5)  -- at most five are live; the newest signs first
  from weirkeeper.delivery d
  join weirkeeper.endpoint e on e.id = d.endpoint_id
  where d.id = take_delivery.delivery;
end $$;

-- As before, and the usual answer, a success of an endpoint that is well, is one statement.
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
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_variable
declare
  d weirkeeper.delivery;
  e weirkeeper.endpoint;
  unchanged boolean;
  moment timestamptz;
  window_used double precision;
  probe boolean;
begin
  select o.* into e from weirkeeper.endpoint o
  where o.id = (select p.endpoint_id from weirkeeper.delivery p where p.id = delivery)
    and o.lease_token = token
  for update;
  if not found then
    held := false;
    return next;
    return;
  end if;
  moment := clock_timestamp();
  if result = 'delivered' and e.enabled and e.failures = 0 and e.noticed = 0
     and coalesce(e.not_before <= moment, true) and e.rate is null and e.ordering = 'none'
     and e.probing is null and coalesce(delay, pause) is null and disable is null then
    with sent as (
      update weirkeeper.delivery o
      set tries = o.tries + 1, attempts = o.attempts + 1, state = 'delivered', next_at = null,
          ended_at = moment
      where o.id = delivery
      returning o.tries, o.attempts, o.trigger
    ), logged as (
      insert into weirkeeper.delivery_attempt
        (delivery_id, number, trigger, started_at, finished_at, url, result, code, status, phases,
         headers, body, truncated, peer)
      select delivery, s.tries, s.trigger, started_at, moment, url, result, code, status, phases,
             headers, body, truncated, peer
      from sent s
    ), freed as (
      update weirkeeper.endpoint o
      set busy_until = null, lease_token = null, last_success_at = moment
      where o.id = e.id
    )
    select s.attempts,
           not exists (select from weirkeeper.key k
                       where k.name = weirkeeper.endpoint_key(e.id) and k.open_at > '-infinity')
    into attempts, unchanged
    from sent s;
    if not unchanged then
      perform weirkeeper.open_endpoint(e.id);
    end if;
    perform set_config('synchronous_commit', 'off', true);  -- of this transaction
    held := true;
    return next;
    return;
  end if;
  select * into d from weirkeeper.delivery o where o.id = delivery;
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

alter function weirkeeper.lease_endpoint(bigint, double precision, bigint) set enable_seqscan = off;
alter function weirkeeper.open_endpoint(bigint) set enable_seqscan = off;

-- As before; nothing more is done for keys under which nobody waits. Under their locks, so that whoever
-- is being parked is seen.
create or replace function weirkeeper.unpark(names text[]) returns integer
language plpgsql set enable_seqscan = off as $$
begin
  if names is null then
    return 0;
  end if;
  perform from weirkeeper.key k where k.name = any (names) order by k.name for update;
  if not exists (select from weirkeeper.parked p where p.key = any (names)) then
    return 0;
  end if;
  return weirkeeper.call_parked(array(select k.name from weirkeeper.key k where k.name = any (names)));
end $$;

-- As before; the usual is one job each of keys that are open, and that nobody holds or waits for.
create or replace function weirkeeper.admit(ids bigint[], of_epoch bigint, of_token bigint)
returns bigint[]
language plpgsql set enable_seqscan = off as $$
declare
  names text[];
  jobs integer;
  locked integer;
  hit bigint[];
  late text[];
  unwanted bigint[];
begin
  select array_agg(distinct j.concurrency_key), count(*) into names, jobs
  from (
    select r.job_id from weirkeeper.running r
    where r.job_id = any (ids) and r.epoch = of_epoch and r.token = of_token
    order by r.job_id for update
  ) mine
  join weirkeeper.job j on j.id = mine.job_id;
  if names is null then
    return '{}';
  end if;
  loop  -- retention removes keys that nobody uses
    insert into weirkeeper.key (name)
    select n.name from unnest(names) n (name)
    where not exists (select from weirkeeper.key k where k.name = n.name)
    order by n.name
    on conflict do nothing;
    perform from weirkeeper.key k where k.name = any (names) order by k.name for update;
    get diagnostics locked = row_count;
    exit when locked = cardinality(names);
  end loop;
  if jobs = cardinality(names) and not exists (
    select from weirkeeper.key k
    where k.name = any (names)
      and (k.open_at > clock_timestamp()
           -- Not EXISTS, of which a plan may make a hash of the whole table.
           or (select true from weirkeeper.parked p where p.key = k.name limit 1)
           or (select true from weirkeeper.running r where r.key = k.name limit 1)
           or (select true from weirkeeper.ready y where y.key = k.name limit 1))
  ) then
    update weirkeeper.running r set key = j.concurrency_key
    from weirkeeper.job j
    where r.job_id = any (ids) and r.epoch = of_epoch and r.token = of_token and j.id = r.job_id
      and j.concurrency_key is not null;
    return '{}';
  end if;
  with door as materialized (
    select k.name, k.open_at <= clock_timestamp() as open,
           exists (select from weirkeeper.parked p where p.key = k.name) as waits,
           (select count(*) from weirkeeper.running r where r.key = k.name) as running,
           (select count(*) from weirkeeper.ready y where y.key = k.name) as called
    from weirkeeper.key k where k.name = any (names)
  ), judged as materialized (
    select m.job_id, m.held, d.name, d.open and d.waits as late,
           d.open and (m.held or not d.waits)
             and m.place + d.running + case when m.held then -m.holding else d.called end
                 <= coalesce(k.max_per_key, 1) as goes
    from (
      select r.job_id, r.kind, j.concurrency_key as name, r.key is not null as held,
             count(r.key) over (partition by j.concurrency_key) as holding,
             row_number() over (partition by j.concurrency_key, r.key is null
                                order by array_position(ids, r.job_id)) as place
      from weirkeeper.running r
      join weirkeeper.job j on j.id = r.job_id
      where r.job_id = any (ids) and r.epoch = of_epoch and r.token = of_token
    ) m
    join door d on d.name = m.name
    left join weirkeeper.kind k on k.name = m.kind
  ), through as (
    update weirkeeper.running r set key = v.name
    from judged v where r.job_id = v.job_id and v.goes and not v.held
  ), gone as (
    delete from weirkeeper.running r
    using judged v where r.job_id = v.job_id and not v.goes
    returning r.job_id, v.name, v.late, r.queue, r.kind, r.priority, r.attempt, r.run,
              r.cancel_requested_at is not null as unwanted
  ), parked as (
    insert into weirkeeper.parked (job_id, key, queue, kind, priority, attempt, run)
    select g.job_id, g.name, g.queue, g.kind, g.priority, g.attempt, g.run - 1  -- it was no run
    from gone g order by g.job_id
    returning job_id, key
  )
  select coalesce(array_agg(p.job_id), '{}'), array_agg(p.key) filter (where g.late),
         array_agg(p.job_id) filter (where g.unwanted)
  into hit, late, unwanted
  from parked p join gone g using (job_id);
  if unwanted is not null then
    perform weirkeeper.cancel_waiting(unwanted);
  end if;
  if late is not null then
    perform weirkeeper.call_parked(array(select distinct unnest(late)));
  end if;
  return hit;
end $$;
