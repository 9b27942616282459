-- Removes what a reindex did not replace: its note is gone. Locks: the rows.
delete from site.document d
where d.version = 0 and not d.removed
  and (%(owner_id)s::text is null or d.owner_id = %(owner_id)s::text)
  and not exists (select from site.note n where n.id = d.note_id)
