-- Deleted notes that last stood at a subject. Index: note_removed_subject.
select note_id::text, version, '' from site.note_removed where subject = %(subject)s
