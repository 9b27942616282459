"""PORT: what upper layers see of the job engine. Strings and JSON; no adapter type leaks."""
