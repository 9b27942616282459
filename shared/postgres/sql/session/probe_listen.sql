-- Hears the channel of a probe; the session is ended after it. LISTEN takes no parameters.
listen {channel}
