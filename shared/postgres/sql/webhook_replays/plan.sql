-- Writes a plan: how many events it would send. Index: event_pkey by a scan of the owner's span.
insert into weirkeeper.webhook_replay (endpoint_id, owner_id, since, until, failed_only, total)
select e.id, e.owner_id, %(since)s, %(until)s, %(failed_only)s, (
  select count(*)
  from weirkeeper.event v
  left join weirkeeper.delivery d on d.endpoint_id = e.id and d.event_id = v.id
  where v.owner_id = e.owner_id and v.occurred_at >= %(since)s and v.occurred_at < %(until)s
    and v.type = any (%(types)s)
    and (not %(failed_only)s or d.state = 'failed')
    and (d.id is null or d.state <> 'pending'))
from weirkeeper.endpoint e
where e.id = %(id)s and e.owner_id = %(owner_id)s
returning id::text, total
