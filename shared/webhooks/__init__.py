"""Webhooks, the pure part: what may be called, what is sent, what answers mean."""
