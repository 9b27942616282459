"""The one contract of everything that runs, and the only place with threads."""
