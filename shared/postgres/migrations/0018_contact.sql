-- Who is told by mail that an endpoint fails, or was disabled.
-- breaking: no

alter table weirkeeper.endpoint add column contact text check (length(contact) between 3 and 254);
