-- Notes that stand at a subject now, and one by its id. Indexes: note_path, note_pkey.
select id::text, version, path from site.note
where path = %(path)s and genre = %(genre)s
union
select id::text, version, path from site.note where id = %(id)s
order by 1
