-- Jobs of one process and queue whose end was asked for. Asked each second while it holds any, and at a
-- notice; `running` is small (what is in flight), so a scan of it is cheap. Locks nothing.
select r.job_id from weirkeeper.running r
where r.epoch = %(epoch)s and r.queue = %(queue)s and r.cancel_requested_at is not null
