"""How the adapters speak to Postgres: connections, prepared statements, SQL by name, errors."""
