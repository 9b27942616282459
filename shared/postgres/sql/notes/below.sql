-- Everything below a note, by levels (at most 32, as paths); `settled`: the path is still true.
-- Index: note_parent.
with recursive below (id, level) as (
  select c.id, 1 from site.note c where c.parent_id = %(id)s
  union
  select c.id, b.level + 1 from below b join site.note c on c.parent_id = b.id where b.level < 32
)
select n.id::text, n.version, n.path, n.path = site.note_path(n) as settled
from site.note n where n.id in (select b.id from below b) order by n.id
