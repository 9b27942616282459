-- Tries A ("wants notices"), then S ("no silent writer is open"), in that order and only what is
-- not held yet. Locks: session advisory, released by wakes/wake_up.
select a.held,
       case when a.held then pg_try_advisory_lock(1464160587, %(lock_no)s * 2 + 1) else false end
from (
  select case when %(dozing)s then true
              else pg_try_advisory_lock(1464160587, %(lock_no)s * 2) end as held
  offset 0
) a
