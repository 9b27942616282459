-- Which limits claims of a queue have to keep: a cap, kinds with a rate, fair kinds. Tables of a few rows.
-- Locks nothing.
select q.cap is not null,
       array(select k.name from weirkeeper.kind k
             where k.queue = q.name and k.rate_n is not null order by k.name),
       array(select k.name from weirkeeper.kind k where k.queue = q.name and k.fair order by k.name)
from weirkeeper.queue q where q.name = %(queue)s
