"""The pool: the only place with child processes. It never names a handler."""

from __future__ import annotations

from shared.absent import absent

# Its children are told apart by names, which pickle can send. Where handlers run dill is there: the
# fork server has imported multiprocess before anything of ours.
with absent("dill"):
    import multiprocess.reduction  # noqa: F401
