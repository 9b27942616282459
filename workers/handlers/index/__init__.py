"""Handlers of the index queue."""
