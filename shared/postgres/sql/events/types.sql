-- Declared types, and who subscribes to them in what runs on this database. Locks nothing; small.
select t.name, t.description, t.subject, t.exposure,
       array(select r.subscription from weirkeeper.route r where r.type = t.name order by 1)
from weirkeeper.event_type t order by t.name
