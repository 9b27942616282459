-- Adds a note; its trigger records the event in this transaction. Index: note_name (a taken name).
insert into site.note
  (owner_id, genre, parent_id, slug, title, body, tags, aliases, lang, published, archived,
   show_as_source, excerpt, css_classes)
values
  (%(owner_id)s, %(genre)s, %(parent_id)s, %(slug)s, %(title)s, %(body)s, %(tags)s, %(aliases)s,
   %(lang)s, %(published)s, %(archived)s, %(show_as_source)s, %(excerpt)s, %(css_classes)s)
returning id::text, version, path, event_id::text
