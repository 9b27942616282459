-- Events whose fan-out leaves out a subscription that wanted their type when they were fanned out. One
-- that came later missed nothing (route.since, with a minute for passes that had begun before), one
-- that was left out on purpose is named with null. Locks nothing. Indexes: event_pkey, route_pkey.
select f.event_id::text, 'of type ' || e.type || ': not given to '
       || string_agg(r.subscription, ', ' order by r.subscription)
from weirkeeper.event_fanout f
join weirkeeper.event e on e.id = f.event_id
join weirkeeper.route r on r.type = e.type
where r.since < f.fanned_out_at - interval '1 minute' and not f.jobs ? r.subscription
  and not r.endpoints  -- given to owners of endpoints alone
group by f.event_id, e.type
limit %(limit)s
