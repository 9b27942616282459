"""What the kinds do: one folder a queue."""
