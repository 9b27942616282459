-- Writes event types that are new or changed. Index: event_type_pkey.
insert into weirkeeper.event_type as t (name, description, subject, exposure)
select d.*
from unnest(%(names)s::text[], %(descriptions)s::text[], %(subjects)s::text[],
            %(exposures)s::text[]) as d (name, description, subject, exposure)
where not exists (
  select from weirkeeper.event_type h
  where (h.name, h.description, h.subject, h.exposure)
      = (d.name, d.description, d.subject, d.exposure))
on conflict (name) do update
set description = excluded.description, subject = excluded.subject,
    exposure = excluded.exposure, declared_at = now()
