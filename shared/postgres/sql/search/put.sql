-- Adds or replaces a document by a higher version; a stale or repeated one changes nothing.
-- Index: document_pkey, document_words. Locks: the row.
-- Committed durably: the child reports its job done after this, and the parent writes that down even
-- when Postgres has crashed in between. An effect must never be less durable than the word of it.
insert into site.document as d
  (note_id, version, owner_id, genre, path, title, excerpt, body, published, archived, words)
values
  (%(id)s::bigint, %(version)s::bigint, %(owner_id)s, %(genre)s, %(path)s, %(title)s,
   %(excerpt)s, %(body)s, %(published)s::boolean, %(archived)s::boolean, %(words)s::tsvector)
on conflict (note_id) do update
set version = excluded.version, removed = false, owner_id = excluded.owner_id,
    genre = excluded.genre, path = excluded.path, title = excluded.title,
    excerpt = excluded.excerpt, body = excluded.body, published = excluded.published,
    archived = excluded.archived, words = excluded.words
where d.version < excluded.version
