-- Gives such events to the subscriptions that they were kept from, as a replay would. Indexes:
-- event_fanout_pkey, event_pkey, route_pkey.
with kept_from as materialized (
  select f.event_id, e.seq, r.subscription
  from weirkeeper.event_fanout f
  join weirkeeper.event e on e.id = f.event_id
  join weirkeeper.route r on r.type = e.type
  where f.event_id = any (%(ids)s::text[]::uuid[])
    and r.since < f.fanned_out_at - interval '1 minute' and not f.jobs ? r.subscription
    and not r.endpoints  -- given to owners of endpoints alone
), given as (
  select sum(weirkeeper.deliver_again(g.subscription, g.ids, 'verify'))
  from (select k.subscription, array_agg(k.event_id order by k.seq) as ids
        from kept_from k group by k.subscription) g
)
select k.event_id::text, 'given to ' || string_agg(k.subscription, ', ' order by k.subscription)
from kept_from k cross join given
group by k.event_id
