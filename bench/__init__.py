"""Measurements: one file each, run as `script/bench NAME`; README.md tells the method."""
