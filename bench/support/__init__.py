"""What measurements stand on: a database or a running stack, sound figures, one way to report."""
