-- The notes that an import's names mean. Index: note_name, by owner and genre.
select n.id::text, n.parent_id::text, n.slug, n.event_id::text
from jsonb_to_recordset(%(drafts)s) as d (parent_id bigint, slug text)
join site.note n
  on n.owner_id = %(owner_id)s and n.genre = %(genre)s and n.slug = d.slug and n.slug <> ''
 and n.parent_id is not distinct from d.parent_id
