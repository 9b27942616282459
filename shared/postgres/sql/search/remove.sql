-- Makes documents tombstones: empty, found by nothing, and a late older version stays out.
-- Index: document_pkey. Locks: the rows, in order.
insert into site.document as d (note_id, version, removed)
select r.note_id, r.version, true
from unnest(%(ids)s::bigint[], %(versions)s::bigint[]) as r (note_id, version)
order by r.note_id
on conflict (note_id) do update
set version = excluded.version, removed = true, owner_id = '', genre = '', path = '', title = '',
    excerpt = '', body = '', published = false, archived = false, words = ''
where d.version < excluded.version
