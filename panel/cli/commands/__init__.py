"""One command a file; the table is in panel.cli.main."""
