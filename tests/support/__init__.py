"""What tests stand on: a throwaway Postgres, databases from a template, real processes, waiting."""
