-- Jobs that wait nowhere, do not run and have not ended: nobody will ever run them. Reads `job`
-- whole; the log only for jobs that stand in no line. Locks nothing.
-- Indexes: job_pkey, attempt_pkey, and the unique ones of the four tables on job_id.
select j.id::text, 'kind ' || j.kind || ': last entry of its log: ' || coalesce(a.outcome, 'none')
from weirkeeper.job j
left join lateral (
  select l.outcome, l.state from weirkeeper.attempt l
  where l.job_id = j.id order by l.run desc limit 1
) a on true
where not exists (select from weirkeeper.ready w where w.job_id = j.id)
  and not exists (select from weirkeeper.scheduled s where s.job_id = j.id)
  and not exists (select from weirkeeper.parked p where p.job_id = j.id)
  and not exists (select from weirkeeper.running r where r.job_id = j.id)
  and coalesce(a.state, '') not in ('completed', 'discarded', 'cancelled')
limit %(limit)s
