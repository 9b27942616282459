"""Tracers and spans."""

import json
from contextlib import contextmanager


class Span:
    def __init__(self, name, parent):
        self.told = {"name": name, "context": {"trace_id": f"0x{parent[1]}"}, "attributes": {}}
        self.told["parent_id"] = f"0x{parent[2]}"

    def set_attribute(self, name, value):
        self.told["attributes"][name] = value


class Tracer:
    @contextmanager
    def start_as_current_span(self, name, context):
        span = Span(name, context)
        try:
            yield span
        except Exception as error:
            span.told["events"] = [{"name": "exception", "message": str(error)}]
            raise
        finally:
            print(json.dumps(span.told, indent=4))


def get_tracer(_name):
    return Tracer()


def set_tracer_provider(_provider):
    """It has none."""
