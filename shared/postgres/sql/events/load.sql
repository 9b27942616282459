-- One event as its subscribers get it. Index: event's primary key on id.
select e.id::text, e.type, e.owner_id, e.subject, e.data,
       to_char(e.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
from weirkeeper.event e
where e.id = %(event_id)s
