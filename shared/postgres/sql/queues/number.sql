-- Number of a queue: names its channel and its sleep lock. Index: queue_pkey.
select q.no from weirkeeper.queue q where q.name = %(queue)s
