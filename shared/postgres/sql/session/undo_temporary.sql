-- Temporary tables, which would hide those of the next job by their names.
discard temp
