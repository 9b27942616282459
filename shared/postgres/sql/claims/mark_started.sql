-- Marks jobs that have been running for a moment, so that a rescue can tell them from claims that
-- never started. Short jobs never get here. Locks: the rows. Index: running_pkey.
update weirkeeper.running r
set started_at = clock_timestamp()
where r.job_id = any (%(job_ids)s::bigint[]) and r.epoch = %(epoch)s
  and r.token = any (%(tokens)s::bigint[])
