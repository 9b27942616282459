-- How often the index of waiting jobs was looked into, and how many entries were read, since statistics
-- began. Entries of dead rows that a snapshot keeps from vacuum count: what makes claims slow.
-- Locks nothing; the server's own counters.
select i.idx_scan::float8, i.idx_tup_read::float8
from pg_stat_user_indexes i
where i.indexrelid = 'weirkeeper.ready_pkey'::regclass
