-- Tells who waits for a fan-out, after the pass has committed. A hint, so its own commit need not
-- reach the disk. Each payload holds at most 100 ids, under the 8,000 bytes of a notice.
select set_config('synchronous_commit', 'off', true), pg_notify('weirkeeper_fanout', c.ids)
from unnest(%(chunks)s::text[]) as c (ids)
