"""What a process says about itself: structured log lines and spans."""
