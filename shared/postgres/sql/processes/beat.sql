-- One beat: one HOT update by primary key. No row back = this life was declared dead: fence oneself.
-- What comes back otherwise: whether it was asked to rest.
update weirkeeper.process
set beat_at = clock_timestamp(), phase = %(phase)s, address = coalesce(%(address)s, address),
    backend_pids = %(backend_pids)s
where epoch = %(epoch)s and phase <> 'stopped'
returning rest_asked_at is not null
