"""HTTP to addresses that strangers gave us: `client.GuardedClient` is all that others use."""
