"""Real processes, real sockets, real signals."""
