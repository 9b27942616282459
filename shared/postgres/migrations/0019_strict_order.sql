-- Strict order: events of an endpoint that keeps order become deliveries, and requests, in order.
-- breaking: no

-- Who wants a type only for owners of endpoints: the relay gives it to nobody else.
alter table weirkeeper.route add column endpoints boolean not null default false;
comment on column weirkeeper.route.endpoints is
  'Only events whose owner has a webhook endpoint are given to this subscription.';
update weirkeeper.route r set endpoints = true where r.subscription = 'webhook.fanout';

-- Written by the relay, in order of events; taken by whichever fan-out comes first, with all before it.
create table weirkeeper.endpoint_line (
  endpoint_id bigint not null,
  event_seq bigint not null,
  event_id uuid not null,
  primary key (endpoint_id, event_seq)
);
comment on table weirkeeper.endpoint_line is
  'Events on their way to endpoints that keep order, not made deliveries yet. No events: bookkeeping.';

create index endpoint_strict on weirkeeper.endpoint (owner_id) where ordering = 'strict';

-- In order of what was asked for: events in theirs, and behind them what is sent once more by hand.
drop index weirkeeper.delivery_pending;
create index delivery_pending on weirkeeper.delivery (endpoint_id, job_id) where state = 'pending';

-- As before; order is that of the jobs, which is the one in which they wait under the key.
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
        order by d.job_id limit 1) end)
    end;
  select k.open_at into known from weirkeeper.key k
  where k.name = weirkeeper.endpoint_key(e.id);
  if wanted > clock_timestamp() or known > '-infinity' then
    perform weirkeeper.key_open(weirkeeper.endpoint_key(e.id), wanted);
  end if;
end $$;

-- As before, and tells whether the endpoint keeps order.
drop function weirkeeper.take_delivery(bigint, double precision, bigint);
create function weirkeeper.take_delivery(
  delivery bigint, lease_seconds double precision, token bigint
) returns table (
  answer text, event_id text, event_type text, body bytea, attempts integer, owner_id text,
  trigger text, begun_at timestamptz, endpoint_id text, url text, headers jsonb, format text,
  signature text, schedule double precision[], ordering text, seconds double precision, sealed bytea[]
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
comment on function weirkeeper.take_delivery is
  'Takes an endpoint''s lease for a delivery and tells what to send where; else why not.';
