-- What currval and lastval remember.
discard sequences
