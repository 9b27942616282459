-- A page of an owner's notes, or of everybody's, by id. Index: note_pkey.
-- ORDER BY n.id, not id: that is the text of the select list, in whose order 10 comes before 2.
select n.id::text, n.version, n.path from site.note n
where n.id > %(after)s and (%(owner_id)s::text is null or n.owner_id = %(owner_id)s::text)
order by n.id limit %(limit)s
