-- Secrets that were sealed with keys on their way out. A table of a few rows an endpoint: scanned.
select s.endpoint_id, s.no, s.sealed, e.owner_id
from weirkeeper.endpoint_secret s
join weirkeeper.endpoint e on e.id = s.endpoint_id
where substr(s.sealed, 1, 5) = any(%(marks)s)
limit %(limit)s
