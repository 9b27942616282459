-- A claim under a rate costs the same however many starts its period holds.
-- breaking: no
--
-- Each row tells how many of its kind were started up to it, so what a period holds is the newest
-- row's total less what was there before the period's first row: two look-ups, and no sum that could
-- drift. An older release inserts its rows as before; the trigger counts them. Rows are inserted under
-- the lock of their kind alone.

-- The newest row knows up to where rows of its kind are removed: what is dead is not walked again.
alter table weirkeeper.rate_start
  add column total bigint,
  add column pruned_to timestamptz not null default '-infinity';
update weirkeeper.rate_start s set total = c.total
from (
  select o.ctid as row_id, sum(o.n) over (partition by o.kind order by o.at, o.ctid) as total
  from weirkeeper.rate_start o
) c
where s.ctid = c.row_id;
alter table weirkeeper.rate_start alter column total set not null;
drop index weirkeeper.rate_start_at;
create index rate_start_at on weirkeeper.rate_start (kind, at, total);

-- Exact for every period, wherever it begins: what was claimed within the last one is counted.
create or replace function weirkeeper.rate_room(
  kind_name text, out room integer, out opens double precision
)
language plpgsql set enable_seqscan = off as $$
declare
  most integer;
  period interval;
  moment timestamptz;
  newest timestamptz;
  started bigint;  -- ever
  first timestamptz;
  before bigint;  -- the period
begin
  select k.rate_n, make_interval(secs => k.rate_ms / 1000.0) into most, period
  from weirkeeper.kind k where k.name = kind_name for no key update;
  if most is null then
    return;
  end if;
  moment := clock_timestamp();
  select s.at, s.total into newest, started
  from weirkeeper.rate_start s where s.kind = kind_name order by s.at desc, s.total desc limit 1;
  if newest > moment then  -- the clock was set back: no start is later than now
    update weirkeeper.rate_start s set at = moment, pruned_to = '-infinity'
    where s.kind = kind_name and s.at > moment;
  end if;
  select s.at, s.total - s.n into first, before
  from weirkeeper.rate_start s where s.kind = kind_name and s.at > moment - period
  order by s.at, s.total limit 1;
  room := greatest(0, most - coalesce(started - before, 0));
  if room = 0 then
    opens := extract(epoch from first + period - moment);
  end if;
end $$;

create function weirkeeper.count_start() returns trigger
language plpgsql set enable_seqscan = off as $$
declare
  horizon timestamptz;
  newest timestamptz;
  started bigint;
  pruned timestamptz;
begin
  select new.at - make_interval(secs => k.rate_ms / 1000.0) into horizon
  from weirkeeper.kind k where k.name = new.kind for no key update;
  select s.at, s.total, s.pruned_to into newest, started, pruned
  from weirkeeper.rate_start s where s.kind = new.kind order by s.at desc, s.total desc limit 1;
  new.at := greatest(new.at, newest);
  new.total := coalesce(started, 0) + new.n;
  new.pruned_to := coalesce(pruned, '-infinity');
  if horizon >= new.pruned_to then
    -- More than one, so that what a pause leaves is soon gone; a bound, because others wait.
    with gone as (
      delete from weirkeeper.rate_start s
      where s.ctid = any (array(
        select o.ctid from weirkeeper.rate_start o
        where o.kind = new.kind and o.at >= new.pruned_to and o.at <= horizon
        order by o.at, o.total limit 100))
      returning s.at
    )
    select case when count(*) < 100 then horizon else max(g.at) end into new.pruned_to from gone g;
  end if;
  return new;
end $$;
comment on function weirkeeper.count_start is
  'Trigger: the total of a kind with a rate; removes some rows that have left the period.';
create trigger count_start before insert on weirkeeper.rate_start
  for each row execute function weirkeeper.count_start();

create function weirkeeper.recount_starts(kind_name text) returns integer
language plpgsql set enable_seqscan = off as $$
declare
  mended integer;
begin
  perform from weirkeeper.kind k where k.name = kind_name for no key update;
  update weirkeeper.rate_start s set total = c.total
  from (
    select o.ctid as row_id, sum(o.n) over (order by o.at, o.total, o.ctid) as total
    from weirkeeper.rate_start o where o.kind = kind_name
  ) c
  where s.ctid = c.row_id and s.total <> c.total;
  get diagnostics mended = row_count;
  return mended;
end $$;
comment on function weirkeeper.recount_starts is
  'Internal: locks a kind; makes the totals of its starts anew. How many rows were changed.';
