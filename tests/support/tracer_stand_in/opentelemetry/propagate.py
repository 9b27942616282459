"""Reads a traceparent."""


def extract(carrier):
    return carrier.get("traceparent", "00-0-0-00").split("-")
