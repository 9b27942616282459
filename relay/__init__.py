"""The relay: turns recorded events into jobs."""
