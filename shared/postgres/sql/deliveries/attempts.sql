-- Attempts of a delivery, in order. Index: delivery_attempt_pkey.
select a.number, a.trigger, a.started_at, a.finished_at, a.url, a.result, a.code, a.status, a.phases,
       a.headers, a.body, a.truncated
from weirkeeper.delivery_attempt a
join weirkeeper.delivery d on d.id = a.delivery_id
where a.delivery_id = %(id)s and d.owner_id = %(owner_id)s
order by a.number
