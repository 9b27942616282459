"""Webhooks: endpoints, their deliveries and secrets, the log of what was sent."""
