-- Whether a note exists and is this owner's: what a parent must be. Index: note_pkey.
select from site.note where id = %(id)s and owner_id = %(owner_id)s
