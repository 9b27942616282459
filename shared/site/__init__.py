"""The reference site: a small real domain that uses the engine the way an application does."""
