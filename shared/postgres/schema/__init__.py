"""The schema: migrating it, which ones a program accepts, waiting for one at boot."""
