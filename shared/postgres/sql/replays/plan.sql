-- How many events a replay would deliver now; null = no such subscription. Locks nothing.
-- Indexes: event_fanout_oldest, event_pkey, route_pkey.
select case when exists (select from weirkeeper.route r where r.subscription = %(subscription)s)
       then (select count(*) from weirkeeper.replayable(
               %(subscription)s, %(types)s::text[], %(since)s::timestamptz, %(until)s::timestamptz))
       end
