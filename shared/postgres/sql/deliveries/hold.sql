-- Closes the key of an endpoint that is busy, or keeps order, so that nobody asks before it is worth it;
-- true = its deliveries wait under the key, this one too. The endpoint is locked first (in a subquery:
-- what is selected beside FOR UPDATE is computed before the lock): a settle in between would find the key
-- open, and leave it to be closed for the rest of a lease that it had given back.
-- Locks: the endpoint, the key. Indexes: delivery_pkey, endpoint_pkey, delivery_pending.
select true, weirkeeper.key_open(weirkeeper.endpoint_key(e.id), greatest(
         e.busy_until,
         case when e.ordering = 'strict' then greatest(e.not_before, (
           select o.next_at from weirkeeper.delivery o
           where o.endpoint_id = e.id and o.state = 'pending' order by o.job_id limit 1),
           clock_timestamp() + make_interval(secs => %(least)s)) end))
from (
  select n.id, n.busy_until, n.ordering, n.not_before
  from weirkeeper.endpoint n
  where n.id = (select d.endpoint_id from weirkeeper.delivery d where d.id = %(id)s)
    and n.enabled and (n.busy_until > clock_timestamp() or n.ordering = 'strict')
  for update
) e
