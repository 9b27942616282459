"""One command brings everything up: embedded Postgres, migrations, supervisord, in one folder.

Starts other programs and watches them; runs no job, and no SQL but through shared.postgres.
"""
