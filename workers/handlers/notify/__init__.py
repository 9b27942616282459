"""Handlers of the notify queue."""
