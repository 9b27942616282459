-- The last word of a process that ended in order.
update weirkeeper.process set beat_at = clock_timestamp(), phase = 'stopped', backend_pids = '{}'
where epoch = %(epoch)s
