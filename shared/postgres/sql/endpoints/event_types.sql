-- Types that may be sent to endpoints, by name. A small table: scanned.
select t.name, t.description from weirkeeper.event_type t
where t.exposure = 'webhook'
order by t.name
