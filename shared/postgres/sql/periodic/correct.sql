-- Sets the next tick where the stored one cannot be right; guarded by what was read, so that of two
-- processes that saw it one writes. Index: periodic_pkey.
update weirkeeper.periodic p
set next_at = %(right)s
where p.name = %(name)s and p.next_at is not distinct from %(wrong)s::timestamptz
