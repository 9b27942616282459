-- Has the relay try events again; see the function (migration events). Index: event_failure_pkey.
select q.id::text from weirkeeper.requeue_events(%(ids)s::uuid[]) q (id)
