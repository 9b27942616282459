"""What an application holds in its own processes: enqueue, wait for results, look."""
