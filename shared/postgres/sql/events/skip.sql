-- Gives up an event that the relay could not fan out; see the function (0008).
-- Indexes: event_failure_pkey, event_pkey, route_pkey.
select weirkeeper.skip_event(%(id)s::uuid)
