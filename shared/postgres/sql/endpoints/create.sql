-- Adds an endpoint. Locks: none.
insert into weirkeeper.endpoint
  (owner_id, url, description, event_types, headers, contact, format, signature, ordering, rate,
   schedule)
values
  (%(owner_id)s, %(url)s, %(description)s, %(event_types)s, %(headers)s, %(contact)s, %(format)s,
   %(signature)s, %(ordering)s, %(rate)s, %(schedule)s)
returning id::text
