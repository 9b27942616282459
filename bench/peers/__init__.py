"""Rivals: how each is installed and driven; README.md tells in which configuration, and why."""
