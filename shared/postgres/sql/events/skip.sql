-- Gives up an event that the relay could not fan out; see the function (migration events).
-- Indexes: event_failure_pkey, event_pkey, route_pkey.
select weirkeeper.skip_event(%(id)s::uuid)
