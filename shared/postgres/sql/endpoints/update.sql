-- Changes the columns that are named in `given`. Locks: the row. Index: endpoint_pkey.
update weirkeeper.endpoint e
set url = case when 'url' = any (%(given)s) then %(url)s else e.url end,
    description = case when 'description' = any (%(given)s) then %(description)s else e.description end,
    event_types = case when 'event_types' = any (%(given)s) then %(event_types)s else e.event_types end,
    headers = case when 'headers' = any (%(given)s) then %(headers)s::jsonb else e.headers end,
    contact = case when 'contact' = any (%(given)s) then %(contact)s else e.contact end,
    format = case when 'format' = any (%(given)s) then %(format)s else e.format end,
    ordering = case when 'ordering' = any (%(given)s) then %(ordering)s else e.ordering end,
    rate = case when 'rate' = any (%(given)s) then %(rate)s::integer else e.rate end,
    schedule = case when 'schedule' = any (%(given)s) then %(schedule)s::double precision[]
                    else e.schedule end,
    updated_at = clock_timestamp()
where e.id = %(id)s and e.owner_id = %(owner_id)s
returning e.id::text
