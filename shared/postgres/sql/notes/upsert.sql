-- Notes of an import, by their name under their parent: added, or changed where they differ.
-- Index: note_name. Locks: the rows and names, in order of name, so that two imports never wait
-- for each other in a circle.
insert into site.note as n
  (owner_id, genre, parent_id, slug, title, body, tags, aliases, css_classes, lang, excerpt,
   published)
select %(owner_id)s, %(genre)s, d.parent_id, d.slug, d.title, d.body, d.tags, d.aliases,
       d.css_classes, d.lang, d.excerpt, d.published
from jsonb_to_recordset(%(drafts)s) as d
  (parent_id bigint, slug text, title text, body text, tags text[], aliases text[],
   css_classes text[], lang text, excerpt text, published boolean)
order by d.parent_id, d.slug
on conflict (owner_id, genre, parent_id, slug) where slug <> '' do update
set title = excluded.title, body = excluded.body, tags = excluded.tags,
    aliases = excluded.aliases, css_classes = excluded.css_classes, lang = excluded.lang,
    excerpt = excluded.excerpt, published = excluded.published
where (n.title, n.body, n.tags, n.aliases, n.css_classes, n.lang, n.excerpt, n.published)
      is distinct from
      (excluded.title, excluded.body, excluded.tags, excluded.aliases, excluded.css_classes,
       excluded.lang, excluded.excerpt, excluded.published)
returning n.id::text, n.parent_id::text, n.slug, n.event_id::text, n.version = 1 as created
