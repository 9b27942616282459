"""Settings as frozen data: read once, cross-checked, told in one way."""
