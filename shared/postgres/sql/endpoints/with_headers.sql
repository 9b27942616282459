-- Endpoints that have headers of their own, by id. Index: endpoint_pkey.
select e.id, e.owner_id, e.headers from weirkeeper.endpoint e
where e.id > %(after)s and e.headers <> '{}'
order by e.id
limit %(limit)s
