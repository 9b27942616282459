-- Notes that stand at a subject now, and one by its id; `settled`: the path is still true.
-- Indexes: note_path, note_pkey.
select n.id::text, n.version, n.path, n.path = site.note_path(n) as settled
from site.note n where n.path = %(path)s and n.genre = %(genre)s
union
select n.id::text, n.version, n.path, n.path = site.note_path(n) from site.note n where n.id = %(id)s
order by 1
