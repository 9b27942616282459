-- A lease and a settle look their rows up, however many deliveries wait elsewhere.
-- breaking: no

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

alter function weirkeeper.lease_endpoint(bigint, double precision, bigint) set enable_seqscan = off;
alter function weirkeeper.open_endpoint(bigint) set enable_seqscan = off;
alter function weirkeeper.settle_delivery(
  bigint, bigint, text, text, double precision, double precision, text, integer, jsonb, jsonb, bytea,
  boolean, text, text, timestamptz) set enable_seqscan = off;
