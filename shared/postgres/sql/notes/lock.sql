-- The version before a change, its row locked so that "changed" is true of this change alone.
-- Locks: the row, until the update's transaction ends. Index: note_pkey.
select version from site.note where id = %(id)s and owner_id = %(owner_id)s for no key update
