"""As much of OpenTelemetry's interface as docs/hooks.md uses; prints spans as the real one does."""
