-- Keeps how far running jobs are, as their handlers told last. At most once a second for each.
-- Locks: the rows. Index: running_pkey; `progress` is in none, so the row stays where it is.
update weirkeeper.running r
set progress = v.progress
from unnest(%(job_ids)s::bigint[], %(tokens)s::bigint[], %(progress)s::jsonb[])
  as v (job_id, token, progress)
where r.job_id = v.job_id and r.epoch = %(epoch)s and r.token = v.token
