-- Takes back what processes/ask_to_rest asked for: each works again with its next beat. Small table,
-- sequential scan. Locks: its rows, as a beat does.
update weirkeeper.process p
set rest_asked_at = null
where p.phase <> 'stopped' and p.rest_asked_at is not null
returning p.epoch, p.slot, p.host, p.generation
