"""Handlers of the webhook queue."""
