"""The listener: lets callers wait briefly for a result, over HTTP."""
