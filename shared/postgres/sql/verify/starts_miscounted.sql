-- Kinds with a rate whose starts do not add up: a total is not that of the row before it and its own.
-- More or fewer jobs would start than the rate says. Reads `rate_start` whole. Locks nothing.
select c.kind, count(*) || ' totals of its starts do not add up'
from (
  select s.kind, s.total - s.n - lag(s.total) over (partition by s.kind order by s.at, s.total) as off
  from weirkeeper.rate_start s
) c
where c.off <> 0
group by c.kind
limit %(limit)s
