-- An enqueue of a unique job reads who holds its key after it took over what it may.
-- breaking: no

-- Takes keys for jobs; whose key another job holds gets that one's id instead. Inserts, takes over what
-- completed jobs do not keep, and reads then: each is a statement, whose snapshot sees what the one before
-- met. Read before, a holder may have given way to another caller, or be pruned with its key, while the taking
-- over waited; its id would be answered for a job that ended long ago. What was released in between is
-- missing, and tried again. Of several jobs with one key the first (the lowest id) takes it. It may wait
-- for another open transaction that takes the same key. In order of the keys: two callers with many
-- keys never wait for each other in a circle.
-- No sequential scans, and a look-up for each key (LIMIT): a plan made while the table was small must
-- not read a large one.
create or replace function weirkeeper.take_unique(hashes bytea[], ids bigint[]) returns bigint[]
language plpgsql set enable_seqscan = off as $$
declare
  holders bigint[];
  missing bigint;
  taken bigint;
begin
  for turn in 1 .. 3 loop
    insert into weirkeeper.unique_key as u (hash, job_id)
    select t.hash, min(t.id)
    from unnest(hashes, ids) t (hash, id)
    group by t.hash order by t.hash
    on conflict (hash) do nothing;
    get diagnostics taken = row_count;
    if taken < cardinality(hashes) then
      perform weirkeeper.take_over(hashes, ids);
    end if;

    select array_agg(u.job_id order by t.n), count(*) filter (where u.job_id is null)
    into holders, missing
    from unnest(hashes) with ordinality t (hash, n)
    left join lateral (
      select k.job_id from weirkeeper.unique_key k where k.hash = t.hash limit 1
    ) u on true;
    if missing = 0 then
      return holders;
    end if;
  end loop;
  raise exception using errcode = '40001', message =
    'unique job: its key was released and taken again three times meanwhile; try again';
end $$;
