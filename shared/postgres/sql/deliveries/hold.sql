-- Tells the key of a busy endpoint when its lease ends, so that nobody asks before. Locks: the key.
select weirkeeper.key_open(weirkeeper.endpoint_key(e.id), e.busy_until)
from weirkeeper.delivery d
join weirkeeper.endpoint e on e.id = d.endpoint_id
where d.id = %(id)s and e.busy_until > clock_timestamp()
