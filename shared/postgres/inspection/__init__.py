"""Looking in: jobs, queues, what an operator asks; and whether rows agree."""
