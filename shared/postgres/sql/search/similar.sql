-- Words of the index that differ from this one by a letter more, less, other, or swapped.
-- Index: term_variants. Bounded: 8, those of the same length first.
select t.term from site.term t
where t.variants && site.variants(%(word)s) and t.term <> %(word)s
order by abs(length(t.term) - length(%(word)s)), t.term limit 8
