-- Notes as they are now, for the index. Index: note_pkey.
select id::text, version, owner_id, genre, path, title, body, excerpt, tags, aliases, published,
       archived
from site.note n where id = any (%(ids)s) order by n.id
