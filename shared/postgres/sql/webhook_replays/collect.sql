-- Lists what a stretch of the log holds for a plan: pages from `first` on, before `behind`. No index leads
-- from an owner to his events, so that no record pays for one; a stretch bounds what one statement reads.
-- Locks: nothing. Indexes: webhook_replay_pkey, delivery_endpoint_id_event_id_key; the log by place.
insert into weirkeeper.webhook_replay_event (replay_id, seq, event_id)
select r.id, v.seq, v.id
from weirkeeper.webhook_replay r
join weirkeeper.event v on v.owner_id = r.owner_id
  and v.occurred_at >= r.since and v.occurred_at < r.until
left join weirkeeper.delivery d on d.endpoint_id = r.endpoint_id and d.event_id = v.id
where r.id = %(id)s
  and v.ctid >= %(first)s::tid
  and v.ctid < %(behind)s::tid
  and v.type = any (%(types)s)
  and (not r.failed_only or d.state = 'failed')
  and (d.id is null or d.state <> 'pending')
