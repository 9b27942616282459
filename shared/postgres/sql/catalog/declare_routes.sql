-- Makes the routes of the subscriptions named exactly these; another generation's stay.
-- Index: route_pkey.
with wanted as (
  select d.type, d.subscription, d.coalesce, d.endpoints
  from unnest(%(types)s::text[], %(subscriptions)s::text[], %(coalesces)s::boolean[],
              %(endpoints)s::boolean[])
       as d (type, subscription, coalesce, endpoints)
), gone as (
  delete from weirkeeper.route r
  where (r.subscription = any (%(names)s::text[]) or %(replace)s)
    and not exists (
      select from wanted w where w.type = r.type and w.subscription = r.subscription)
)
insert into weirkeeper.route as r (type, subscription, coalesce, endpoints)
select w.type, w.subscription, w.coalesce, w.endpoints from wanted w
on conflict (type, subscription) do update
set coalesce = excluded.coalesce, endpoints = excluded.endpoints
where (r.coalesce, r.endpoints) <> (excluded.coalesce, excluded.endpoints)
