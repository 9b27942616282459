-- Runs jobs once more through the one implementation that every language shares.
select r.job_id, r.state, r.changed, r.held_by from weirkeeper.retry_jobs(%(ids)s::bigint[]) r
