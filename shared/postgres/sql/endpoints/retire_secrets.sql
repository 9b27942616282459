-- Has the secrets so far expire after the overlap, at most as late as they would anyway; those beyond
-- the newest four go at once. Locks: the rows. Index: endpoint_secret_pkey.
with ranked as (
  select s.no, row_number() over (order by s.no desc) as nth
  from weirkeeper.endpoint_secret s where s.endpoint_id = %(id)s
)
update weirkeeper.endpoint_secret s
set expires_at = least(s.expires_at, clock_timestamp()
      + make_interval(secs => case when r.nth > 4 then 0 else %(overlap)s end))
from ranked r
where s.endpoint_id = %(id)s and s.no = r.no
