-- Issued once when the connection opens, before the first try to sleep. The name is a constant of
-- ours and a number; LISTEN takes no parameters.
listen {channel}
