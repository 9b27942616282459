-- Documents of an owner that match, best first. Index: document_words.
-- Bounded: of a word that stands everywhere the first 5,000 documents are ranked, and snippets are
-- cut for the page alone.
with matching as materialized (
  select d.note_id, d.words
  from site.document d
  where d.words @@ %(query)s::tsquery and d.owner_id = %(owner_id)s and not d.archived
    and not d.removed and (d.published or not %(published_only)s)
  limit 5000
), best as (
  select m.note_id, ts_rank(m.words, %(query)s::tsquery, 1)::double precision as score
  from matching m order by score desc, m.note_id limit %(limit)s
)
select d.note_id::text, d.genre, d.path, d.title, b.score, d.excerpt,
       substr(d.body, greatest(first.place - 60, 1), 240), coalesce(first.place, 1) > 61
from best b
join site.document d on d.note_id = b.note_id
cross join lateral (
  select min(nullif(strpos(lower(d.body), w.word), 0)) as place
  from unnest(%(words)s::text[]) as w (word)
) as first
order by b.score desc, b.note_id
