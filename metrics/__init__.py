"""The metrics process: one Prometheus endpoint for the whole deployment."""
