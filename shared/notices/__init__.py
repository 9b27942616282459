"""Notices: hints that something changed, and the bounded waiters that they wake."""
