"""The schema as text, and what the database itself must say about it."""
