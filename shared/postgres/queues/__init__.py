"""The engine: lines of jobs and what moves through them, from the claim to the end."""
