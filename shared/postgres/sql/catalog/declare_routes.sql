-- Makes the routes of the subscriptions named exactly these; another generation's stay.
-- Index: route_pkey.
with wanted as (
  select d.type, d.subscription, d.coalesce
  from unnest(%(types)s::text[], %(subscriptions)s::text[], %(coalesces)s::boolean[])
       as d (type, subscription, coalesce)
), gone as (
  delete from weirkeeper.route r
  where (r.subscription = any (%(names)s::text[]) or %(replace)s)
    and not exists (
      select from wanted w where w.type = r.type and w.subscription = r.subscription)
)
insert into weirkeeper.route as r (type, subscription, coalesce)
select w.type, w.subscription, w.coalesce from wanted w
on conflict (type, subscription) do update set coalesce = excluded.coalesce
where r.coalesce <> excluded.coalesce
