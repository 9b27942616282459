"""Providers."""


class TracerProvider:
    def add_span_processor(self, processor):
        self.processor = processor
