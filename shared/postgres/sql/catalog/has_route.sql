-- Whether a subscription wants events of a type. Locks nothing. Index: route_pkey.
select 1 from weirkeeper.route r
where r.type = %(type)s and r.subscription = %(subscription)s
