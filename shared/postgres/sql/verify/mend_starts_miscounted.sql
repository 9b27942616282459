-- Counts the starts of such kinds anew. Locks: the kinds, in order of their names. Index: rate_start_at.
select i.kind, 'counted anew'
from (select unnest(%(ids)s::text[]) as kind order by 1) i
where weirkeeper.recount_starts(i.kind) > 0
