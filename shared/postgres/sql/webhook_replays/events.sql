-- Events of an owner in a span of time, after a number, in order.
select v.seq, v.id::text, v.type, v.subject,
       to_char(v.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), v.data::text
from weirkeeper.event v
left join weirkeeper.delivery d on d.endpoint_id = %(endpoint_id)s and d.event_id = v.id
where v.owner_id = %(owner_id)s and v.seq > %(after_seq)s
  and v.occurred_at >= %(since)s and v.occurred_at < %(until)s
  and v.type = any (%(types)s)
  and (not %(failed_only)s or d.state = 'failed')
order by v.seq
limit %(limit)s
