-- The reference site's own tables: notes, the events that they emit, and the search index.
-- breaking: no
--
-- The engine never reads this schema; the site writes to the engine only by recording events.

create schema site;
comment on schema site is 'The reference site: notes and their search index.';

-- What letters are must not depend on the database's locale: under C, Chinese is punctuation.
do $$
begin
  create collation site.any_script (provider = libc, locale = 'C.UTF-8');
exception when others then
  begin
    execute 'create collation site.any_script (provider = builtin, locale = ''C.UTF-8'')';
  exception when others then
    create collation site.any_script from "C";
  end;
end $$;
comment on collation site.any_script is 'Letters and digits of every script.';

create table site.note (
  id bigint primary key generated always as identity,
  owner_id text not null check (length(owner_id) between 1 and 200),
  genre text not null check (genre in ('raw', 'wiki', 'writing')),
  parent_id bigint references site.note,
  slug text not null default '' check (length(slug) <= 255),
  title text not null default '' check (length(title) <= 500),
  body text not null default '' check (octet_length(body) <= 1048576),
  tags text[] not null default '{}',
  aliases text[] not null default '{}',
  lang text not null default '' check (length(lang) <= 35),
  published boolean not null default false,
  archived boolean not null default false,
  show_as_source boolean not null default true,
  excerpt text not null default '' check (length(excerpt) <= 2000),
  css_classes text[] not null default '{}',
  path text not null default '',
  version bigint not null default 1,
  event_id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
comment on table site.note is
  'Notes. Emits corpus.note.changed by trigger (insert, delete, update of a watched column).';
comment on column site.note.path is 'Kept by the trigger: what the subject of its events says.';
comment on column site.note.version is 'Raised by the trigger at each change.';
comment on column site.note.event_id is 'Kept by the trigger: its latest event.';

-- One note a name under its parent, which is how an import finds what it wrote before.
create unique index note_name on site.note (owner_id, genre, parent_id, slug) nulls not distinct
  where slug <> '';
create index note_parent on site.note (parent_id) where parent_id is not null;
create index note_path on site.note using hash (path);  -- a path is too long for a b-tree

create table site.note_removed (
  note_id bigint primary key,
  subject text not null,
  version bigint not null
);
create index note_removed_subject on site.note_removed using hash (subject);
comment on table site.note_removed is
  'Deleted notes that the search index may still hold. No events: the note''s delete told it.';

create table site.document (
  note_id bigint primary key,
  version bigint not null,
  removed boolean not null default false,
  owner_id text not null default '',
  genre text not null default '',
  path text not null default '',
  title text not null default '',
  excerpt text not null default '',
  body text not null default '',
  published boolean not null default false,
  archived boolean not null default false,
  words tsvector not null default ''
);
-- A short pending list halves what a write costs the server (0.9 instead of 1.7 to 2.2 ms for 300
-- words) at the same p99; 1 MiB is little to read for a search and to merge for a write.
create index document_words on site.document using gin (words)
  with (fastupdate = on, gin_pending_list_limit = 1024);
comment on table site.document is
  'The search index: what a search finds of a note, or a tombstone. No events: derived.';

create table site.term (
  term text primary key,
  variants text[] not null
);
create index term_variants on site.term using gin (variants) with (fastupdate = off);
comment on table site.term is
  'Words of the index with what is left when one letter is missing: finds typos. No events.';

-- ── paths ───────────────────────────────────────────────────────────────────────────────────────

create function site.path_segment(name text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select coalesce(nullif(trim(both '-' from left(trim(both '-' from
    regexp_replace(lower(name collate site.any_script), '[^[:alnum:]]+', '-', 'g')), 80)), ''),
    'untitled')
$$;
comment on function site.path_segment is
  'Lower case, runs of anything but letters and digits become "-", at most 80 characters.';

-- At most 32 levels and 2,000 characters (the nearest ones are kept): a subject holds 2,048.
create function site.note_path(note site.note) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  with recursive up (level, parent_id, segment) as (
    select 1, note.parent_id,
           site.path_segment(coalesce(nullif(note.slug, ''), note.title))
    union all
    select up.level + 1, p.parent_id,
           site.path_segment(coalesce(nullif(p.slug, ''), p.title))
    from up join site.note p on p.id = up.parent_id
    where up.level < 32
  )
  select case note.genre
    when 'raw' then note.id::text
    when 'writing' then site.path_segment(coalesce(nullif(note.slug, ''), note.title))
    else right((select string_agg(up.segment, '/' order by up.level desc) from up), 2000)
  end
$$;
comment on function site.note_path is 'raw: its id; writing: its slug; wiki: names from the root.';

-- ── the trigger: before each row, what the site keeps of itself ─────────────────────────────────

create function site.note_before() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  new.path := site.note_path(new);
  if tg_op = 'INSERT' then
    new.version := 1;
    new.event_id := gen_random_uuid();
    return new;
  end if;
  if new.owner_id <> old.owner_id then
    raise exception using errcode = '23514', message = format(
      'note %s: expected its owner to stay; got another; add a new note instead', old.id);
  end if;
  if new.parent_id is distinct from old.parent_id then
    perform site.refuse_cycle(new.id, new.parent_id);
  end if;
  new.version := old.version;
  new.event_id := old.event_id;
  -- The 13 watched columns: what readers of a note see.
  if (new.genre, new.title, new.body, new.tags, new.parent_id, new.published,
      new.show_as_source, new.aliases, new.excerpt, new.slug, new.archived, new.css_classes,
      new.lang)
     is distinct from
     (old.genre, old.title, old.body, old.tags, old.parent_id, old.published,
      old.show_as_source, old.aliases, old.excerpt, old.slug, old.archived, old.css_classes,
      old.lang) then
    new.event_id := gen_random_uuid();
  end if;
  if new.event_id <> old.event_id or new.path <> old.path then
    new.version := old.version + 1;
    new.updated_at := now();
  end if;
  return new;
end $$;
comment on function site.note_before is 'Trigger: keeps path, version and latest event of a note.';

create function site.refuse_cycle(note_id bigint, parent bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  if exists (
    with recursive up (id) as (
      select parent
      union
      select n.parent_id from up join site.note n on n.id = up.id
    )
    select from up where up.id = refuse_cycle.note_id) then
    raise exception using errcode = '23514', message = format(
      'note %s: expected a parent that is not below it; got %s; choose another', note_id, parent);
  end if;
end $$;
comment on function site.refuse_cycle is 'Raises when a note would stand below itself.';

create trigger note_before before insert or update on site.note
  for each row execute function site.note_before();

-- ── the trigger: after each statement, what the others are told ─────────────────────────────────
-- Per statement, so that an import of 200 notes records 200 events with one insert.

create function site.note_inserted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into weirkeeper.event (id, owner_id, type, subject, data)
  select n.event_id, n.owner_id, 'corpus.note.changed', n.genre || '://' || n.path,
         jsonb_build_object(
           'op', 'insert', 'note_id', n.id::text, 'genre', n.genre,
           'parent_id', n.parent_id::text, 'published', n.published, 'was_published', false,
           'path_changed', false, 'version', n.version)
  from new_notes n order by n.id;
  return null;
end $$;
comment on function site.note_inserted is 'Trigger: records corpus.note.changed for new notes.';

create function site.note_updated() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  moved bigint[];
begin
  insert into weirkeeper.event (id, owner_id, type, subject, data)
  select n.event_id, n.owner_id, 'corpus.note.changed', n.genre || '://' || n.path,
         jsonb_build_object(
           'op', 'update', 'note_id', n.id::text, 'genre', n.genre,
           'parent_id', n.parent_id::text, 'published', n.published,
           'was_published', o.published,
           'path_changed', (n.genre, n.path) <> (o.genre, o.path), 'version', n.version)
  from new_notes n join old_notes o on o.id = n.id
  where n.event_id <> o.event_id order by n.id;

  -- What stands below a renamed or moved note gets its new path, and a higher version, without an
  -- event of its own: the note's says path_changed.
  with recursive below (id, level) as (
    select c.id, 1
    from new_notes n join old_notes o on o.id = n.id join site.note c on c.parent_id = n.id
    where (n.slug, n.title, n.parent_id) is distinct from (o.slug, o.title, o.parent_id)
    union
    select c.id, b.level + 1
    from below b join site.note c on c.parent_id = b.id where b.level < 32
  )
  select array_agg(c.id) into moved
  from site.note c join below b on b.id = c.id where c.path <> site.note_path(c);
  if moved is not null then  -- an update of no rows would fire this trigger again, for ever
    update site.note n set updated_at = n.updated_at where n.id = any (moved);
  end if;
  return null;
end $$;
comment on function site.note_updated is
  'Trigger: records corpus.note.changed for what really changed; hands a new path down.';

create function site.note_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into site.note_removed (note_id, subject, version)
  select o.id, o.genre || '://' || o.path, o.version + 1 from old_notes o;
  insert into weirkeeper.event (owner_id, type, subject, data)
  select o.owner_id, 'corpus.note.changed', o.genre || '://' || o.path,
         jsonb_build_object(
           'op', 'delete', 'note_id', o.id::text, 'genre', o.genre,
           'parent_id', o.parent_id::text, 'published', false, 'was_published', o.published,
           'path_changed', false, 'version', o.version + 1)
  from old_notes o order by o.id;
  return null;
end $$;
comment on function site.note_deleted is
  'Trigger: records corpus.note.changed for deleted notes, with their last known subject.';

create trigger note_inserted after insert on site.note
  referencing new table as new_notes for each statement execute function site.note_inserted();
create trigger note_updated after update on site.note
  referencing old table as old_notes new table as new_notes
  for each statement execute function site.note_updated();
create trigger note_deleted after delete on site.note
  referencing old table as old_notes for each statement execute function site.note_deleted();

-- ── typos ───────────────────────────────────────────────────────────────────────────────────────
-- Two words that differ by one letter (more, less, other, or two swapped) share a variant, which
-- an ordinary index finds: no extension, no scan of the vocabulary.

create function site.variants(word text) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select array_agg(distinct left(word, i) || substr(word, i + 2))
  from generate_series(0, length(word)) i
$$;
comment on function site.variants is 'A word, and what is left of it without one of its letters.';
