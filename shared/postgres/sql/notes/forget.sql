-- Drops the memory of deleted notes that the index has removed. Index: note_removed_pkey.
delete from site.note_removed where note_id = any (%(ids)s)
