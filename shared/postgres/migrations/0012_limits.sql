-- Caps of queues, rate limits of kinds, and turns of owners within a fair kind.
-- breaking: no
--
-- Rows are locked for the length of a claim, by processes that claim from a capped queue or a kind
-- with a rate alone: the queue's, then the kind's.

create table weirkeeper.rate_start (
  kind text not null,
  at timestamptz not null default clock_timestamp(),
  n integer not null
);
create index rate_start_at on weirkeeper.rate_start (kind, at);
comment on table weirkeeper.rate_start is
  'How many jobs of a kind with a rate were claimed, and when. No events: a limit, not a fact.';

create function weirkeeper.cap_room(queue_name text) returns integer
language plpgsql as $$
declare
  most integer;
begin
  select q.cap into most from weirkeeper.queue q where q.name = queue_name for no key update;
  return greatest(0, most - (select count(*) from weirkeeper.running r where r.queue = queue_name));
end $$;
comment on function weirkeeper.cap_room is
  'Internal: locks a queue; how many more of its jobs may run. NULL = it has no cap.';

-- Exact for every period, wherever it begins: what was claimed within the last one is counted.
create function weirkeeper.rate_room(kind_name text, out room integer, out opens double precision)
language plpgsql set enable_seqscan = off as $$
declare
  most integer;
  period interval;
begin
  select k.rate_n, make_interval(secs => k.rate_ms / 1000.0) into most, period
  from weirkeeper.kind k where k.name = kind_name for no key update;
  if most is null then
    return;
  end if;
  delete from weirkeeper.rate_start s
  where s.kind = kind_name and s.at <= clock_timestamp() - period;
  select greatest(0, most - coalesce(sum(s.n), 0)),
         case when sum(s.n) >= most
              then extract(epoch from min(s.at) + period - clock_timestamp()) end
  into room, opens
  from weirkeeper.rate_start s where s.kind = kind_name;
end $$;
comment on function weirkeeper.rate_room is
  'Internal: locks a kind; how many more may start now, else in how many seconds. NULL = it has no rate.';
