"""The relay process: turns pending events into jobs. Any number may run, on any number of hosts."""
