-- Asks every living queue process and relay of other generations than the one that stays to start
-- nothing more; each hears it with its next beat. Returns those that are asked now, also by an earlier
-- call. Small table, sequential scan. Locks: its rows, as a beat does.
update weirkeeper.process p
set rest_asked_at = coalesce(p.rest_asked_at, clock_timestamp())
where p.phase <> 'stopped' and p.role in ('queue', 'relay')
  and p.beat_at > clock_timestamp() - interval '15 s'
  and p.generation <> %(stays)s
  and (%(only)s::text is null or p.generation = %(only)s)
returning p.epoch, p.slot, p.host, p.generation
