-- An event as it is sent. Its data as text: what a program reads and writes again loses digits of
-- long numbers. Index: event_pkey.
select e.id::text, e.type, e.subject,
       to_char(e.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.data::text
from weirkeeper.event e
where e.id = %(event_id)s
