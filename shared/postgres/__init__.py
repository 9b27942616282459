"""ADAPTERS: the only importer of psycopg. One SQL statement a file, under sql/."""
