-- What the database thinks this epoch holds of one queue (another loop of the process may have
-- others): compared with what it does hold, after a reconnect and
-- every 10 s. `running` is small (what is in flight), so a scan of it is cheap.
select r.job_id, r.token, extract(epoch from clock_timestamp() - r.claimed_at)::double precision
from weirkeeper.running r
where r.epoch = %(epoch)s and r.queue = %(queue)s
