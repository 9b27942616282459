-- A new life of a process: its epoch. Committed synchronously: rows that name an epoch must never
-- outlive it. Index: process_pkey.
insert into weirkeeper.process
  (role, slot, queue, host, boot_id, pid_namespace, pid, pid_started, version, phase,
   connections, children, kinds, generation, queues)
values
  (%(role)s, %(slot)s, %(queue)s, %(host)s, %(boot_id)s, %(pid_namespace)s, %(pid)s,
   %(pid_started)s, %(version)s, 'starting', %(connections)s, %(children)s, %(kinds)s,
   %(generation)s, %(queues)s::jsonb)
returning epoch
