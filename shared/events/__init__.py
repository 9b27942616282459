"""PORT: recording events, their types, and the subscriptions that turn them into jobs."""
