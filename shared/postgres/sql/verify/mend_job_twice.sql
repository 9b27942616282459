-- Leaves each such job in one place: where it runs; else in line; else parked. All parts see the
-- same moment, so one place always stays. Indexes: the unique ones of the four tables on job_id.
with sought as materialized (
  select unnest(%(ids)s::text[]::bigint[]) as id
), line as (
  delete from weirkeeper.ready w using sought s
  where w.job_id = s.id
    and exists (select from weirkeeper.running r where r.job_id = s.id)
  returning w.job_id, 'ready' as place
), lot as (
  delete from weirkeeper.parked p using sought s
  where p.job_id = s.id
    and (exists (select from weirkeeper.running r where r.job_id = s.id)
         or exists (select from weirkeeper.ready w where w.job_id = s.id))
  returning p.job_id, 'parked' as place
), clock as (
  delete from weirkeeper.scheduled c using sought s
  where c.job_id = s.id
    and (exists (select from weirkeeper.running r where r.job_id = s.id)
         or exists (select from weirkeeper.ready w where w.job_id = s.id)
         or exists (select from weirkeeper.parked p where p.job_id = s.id))
  returning c.job_id, 'scheduled' as place
)
select g.job_id::text, 'taken out of ' || string_agg(g.place, ' and ' order by g.place)
from (table line union all table lot union all table clock) g
group by g.job_id
