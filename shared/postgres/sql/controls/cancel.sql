-- Cancels jobs through the one implementation that every language shares.
select c.job_id, c.state, c.changed from weirkeeper.cancel_jobs(%(ids)s::bigint[]) c
