-- Whom a notice about an endpoint is for; no row = it was removed. Index: endpoint_pkey.
select e.id::text, e.url, e.contact from weirkeeper.endpoint e
where e.id = %(id)s and e.owner_id = %(owner_id)s
