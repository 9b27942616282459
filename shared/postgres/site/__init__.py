"""The tables of the example site."""
