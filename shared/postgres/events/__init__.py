"""Events: recorded, made into jobs by a relay, kept in a log, replayed."""
