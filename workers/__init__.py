"""A queue process: claims jobs for a bounded pool of child processes."""
