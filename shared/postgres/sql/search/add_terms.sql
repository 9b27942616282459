-- Words that the index has not seen yet, with their variants: what typos are looked up in.
-- Index: term_pkey. Locks: new words, sorted, in a transaction of their own: two writers of the
-- same words wait for each other but never in a circle. Commits without waiting for the disk: what
-- search/put commits after it, durably, takes it along.
with relaxed as (
  select set_config('synchronous_commit', 'off', true)
)
insert into site.term (term, variants)
select w.term, site.variants(w.term)
from relaxed, unnest(%(terms)s::text[]) as w (term)
where not exists (select from site.term t where t.term = w.term)
order by w.term
on conflict (term) do nothing
