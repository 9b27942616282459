"""The pool: the only place with child processes. It never names a handler."""
