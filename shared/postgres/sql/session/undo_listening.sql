-- No notices that a job asked for.
unlisten *
