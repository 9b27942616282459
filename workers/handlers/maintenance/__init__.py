"""HANDLERS of the maintenance queue: what the engine does for itself (shared.engine)."""
