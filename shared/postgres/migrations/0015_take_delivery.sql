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

-- One index for both: of an event, and once an endpoint.
alter table weirkeeper.delivery
  add constraint delivery_event_id_endpoint_id_key unique (event_id, endpoint_id),
  drop constraint delivery_endpoint_id_event_id_key;
drop index weirkeeper.delivery_event;
