-- Which limits claims of a queue have to keep: a cap, kinds with a rate, fair kinds; and whether moved/bring or
-- moved/unattended may find something, so that a process at rest need not ask with statements of their own:
-- jobs of its kinds in other lines, a kind of its that is declared elsewhere, something overdue in another queue.
-- Locks nothing. Indexes: ready_pkey, scheduled_due, expiry_pkey. The other tables have a few rows.
select q.cap is not null,
       array(select k.name from weirkeeper.kind k
             where k.queue = q.name and k.rate_n is not null order by k.name),
       array(select k.name from weirkeeper.kind k where k.queue = q.name and k.fair order by k.name),
       exists (
         select from weirkeeper.kind k
         cross join weirkeeper.queue o
         cross join lateral (
           select from weirkeeper.ready w where w.queue = o.name and w.kind = k.name limit 1) astray
         where k.queue = q.name and o.name <> q.name)
       or exists (
         select from weirkeeper.process me
         join weirkeeper.kind k on k.name = any (me.kinds)
         where me.epoch = %(epoch)s and k.queue <> q.name)
       or exists (
         select from weirkeeper.queue o
         where o.name <> q.name and coalesce(
           (select true from weirkeeper.scheduled s
            where s.queue = o.name and s.run_at <= now() - interval '5 s' order by s.run_at limit 1),
           (select true from weirkeeper.expiry e
            where e.queue = o.name and e.expires_at <= now() - interval '5 s'
            order by e.expires_at limit 1)))
from weirkeeper.queue q where q.name = %(queue)s
