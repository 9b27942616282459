-- Folders of an import that are no notes yet; those that are stay as they are.
-- Index: note_name. Locks: a name that another open transaction adds is waited for; names are
-- sorted, so two imports never wait for each other.
insert into site.note (owner_id, genre, parent_id, slug, title)
select %(owner_id)s, %(genre)s, d.parent_id, d.slug, d.title
from jsonb_to_recordset(%(drafts)s) as d (parent_id bigint, slug text, title text)
order by d.parent_id, d.slug
on conflict (owner_id, genre, parent_id, slug) where slug <> '' do nothing
returning id::text, parent_id::text, slug, event_id::text, true as created
