"""The one contract of everything that runs (start, started, stop), and the only place with threads."""
