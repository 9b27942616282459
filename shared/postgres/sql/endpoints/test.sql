-- Notes that a test is sent now; no row = one was, less than `gap` seconds ago.
-- Locks: the row. Index: endpoint_pkey.
update weirkeeper.endpoint e
set tested_at = clock_timestamp()
where e.id = %(id)s and e.owner_id = %(owner_id)s
  and (e.tested_at is null or e.tested_at < clock_timestamp() - make_interval(secs => %(gap)s))
returning e.id::text
