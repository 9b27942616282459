-- Replaces headers by the same ones sealed anew, unless somebody was faster. Locks: the row.
-- Index: endpoint_pkey.
update weirkeeper.endpoint e set headers = %(anew)s::jsonb
where e.id = %(endpoint)s and e.headers = %(headers)s::jsonb
