-- A page of an owner's notes, or of everybody's, by id. Index: note_pkey.
select id::text, version, path from site.note
where id > %(after)s and (%(owner_id)s::text is null or owner_id = %(owner_id)s::text)
order by id limit %(limit)s
