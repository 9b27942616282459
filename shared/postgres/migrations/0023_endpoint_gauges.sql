-- Endpoints that fail or are disabled are counted without a look at the others.
-- breaking: no

-- Of columns that a delivery leaves as they are: its updates still stay within their page.
create index endpoint_failing_since on weirkeeper.endpoint (failing_since)
  where enabled and failing_since is not null;
create index endpoint_disabled on weirkeeper.endpoint (id) where not enabled;
