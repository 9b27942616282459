-- What the floors of a queue's lanes are learned from (shared/postgres/queues/floors.py): the sequence's last
-- value, the oldest transaction still open, the one to begin next, and the lowest row that is visible in
-- each lane above its bound (0 = none). Locks nothing. Index: ready_pkey, one row a lane.
select (select case when s.is_called then s.last_value else 0 end from weirkeeper.ready_seq s),
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
       -- The next id to be given out: a snapshot's xmax is only one more than the last that *ended*,
       -- and a writer that is alone and open has an id beyond it. age() counts up to the next one.
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint
         + age(pg_snapshot_xmax(pg_current_snapshot())::xid),
       (select array_agg(coalesce(low.seq, 0) order by l.n)
        from unnest(%(kinds)s::text[], %(priorities)s::smallint[], %(bounds)s::bigint[])
             with ordinality as l (kind, priority, bound, n)
        left join lateral (
          select w.seq from weirkeeper.ready w
          where w.queue = %(queue)s and w.kind = l.kind and w.priority = l.priority
            and w.seq > l.bound
          order by w.seq limit 1
        ) low on true)
