"""The only place that reaches the outside world."""
