-- Running jobs whose process never registered, or ended a minute ago: the rescue, which takes two
-- seconds, did not see to them. `running` is small. Locks nothing. Index: process_pkey.
select r.job_id::text,
       'held by epoch ' || r.epoch || case when p.epoch is null then ', which is not there'
                                           else ', which has stopped' end
from weirkeeper.running r
left join weirkeeper.process p on p.epoch = r.epoch
where p.epoch is null
   or p.phase = 'stopped' and p.beat_at < clock_timestamp() - interval '1 minute'
limit %(limit)s
