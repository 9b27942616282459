-- Everything below a note, by levels (at most 32, as paths). Index: note_parent.
with recursive below (id, level) as (
  select c.id, 1 from site.note c where c.parent_id = %(id)s
  union
  select c.id, b.level + 1 from below b join site.note c on c.parent_id = b.id where b.level < 32
)
select n.id::text, n.version, n.path from site.note n join below b on b.id = n.id order by n.id
