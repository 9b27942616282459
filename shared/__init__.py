"""The library: starts nothing, and imports none of the processes."""
