-- Changes the columns that `given` names; the trigger tells whether anything really changed.
-- Index: note_pkey. Locks: the row.
update site.note set
  genre = case when 'genre' = any (%(given)s) then %(genre)s else genre end,
  parent_id = case when 'parent_id' = any (%(given)s) then %(parent_id)s::bigint else parent_id end,
  slug = case when 'slug' = any (%(given)s) then %(slug)s else slug end,
  title = case when 'title' = any (%(given)s) then %(title)s else title end,
  body = case when 'body' = any (%(given)s) then %(body)s else body end,
  tags = case when 'tags' = any (%(given)s) then %(tags)s::text[] else tags end,
  aliases = case when 'aliases' = any (%(given)s) then %(aliases)s::text[] else aliases end,
  lang = case when 'lang' = any (%(given)s) then %(lang)s else lang end,
  published = case when 'published' = any (%(given)s) then %(published)s::boolean
              else published end,
  archived = case when 'archived' = any (%(given)s) then %(archived)s::boolean else archived end,
  show_as_source = case when 'show_as_source' = any (%(given)s)
                   then %(show_as_source)s::boolean else show_as_source end,
  excerpt = case when 'excerpt' = any (%(given)s) then %(excerpt)s else excerpt end,
  css_classes = case when 'css_classes' = any (%(given)s) then %(css_classes)s::text[]
                else css_classes end
where id = %(id)s and owner_id = %(owner_id)s
returning id::text, version, path, event_id::text
