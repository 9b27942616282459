-- Gives notes their true path. One is untrue when the note was added below another that a second,
-- open transaction was renaming: neither saw the other. Index: note_pkey. Locks: the rows.
update site.note n set updated_at = n.updated_at
where n.id = any (%(ids)s) and n.path <> site.note_path(n)
