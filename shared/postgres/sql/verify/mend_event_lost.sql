-- Hands such events to the relay, which tries those with an entry here one by one, now.
-- Indexes: event_pkey, event_fanout_pkey, event_failure_pkey.
with handed as (
  insert into weirkeeper.event_failure (event_id, last_error)
  select e.id, 'it stood in no line'
  from weirkeeper.event e
  where e.id = any (%(ids)s::text[]::uuid[])
    and not exists (select from weirkeeper.event_fanout f where f.event_id = e.id)
    and not exists (select from weirkeeper.event_pending p where p.event_id = e.id)
  on conflict (event_id) do nothing
  returning event_id
), woken as (
  select weirkeeper.wake(0, 'weirkeeper_relay')
)
select h.event_id::text, 'handed to the relay' from handed h cross join woken
