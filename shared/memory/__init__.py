"""ADAPTER without a database: the ports of jobs and events in one process, for applications' tests.

Nothing runs by itself: time stands still until it is told to go on, and jobs run when `run_due` is
called, in the caller's thread, in a fixed order. It passes the `jobs` part of the contract suite
(tests/conformance) that Postgres passes; applications reach it through weirkeeper.testing.
"""
