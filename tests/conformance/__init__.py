"""One contract for every adapter of the job engine; the numbers in the names are its clauses."""
