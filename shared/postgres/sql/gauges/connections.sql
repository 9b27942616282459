-- Sessions of this database by whose they are and what they do. Application names are the callers'
-- word and become no label. Locks nothing; no table of ours.
select case when starts_with(a.application_name, 'weirkeeper ') then 'weirkeeper' else 'application' end,
       coalesce(a.state, 'unknown'), count(*)::float8
from pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend'
group by 1, 2
