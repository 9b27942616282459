-- Hears what callers wait for; issued right after connecting, before anybody reads. Locks nothing.
listen {channel}
