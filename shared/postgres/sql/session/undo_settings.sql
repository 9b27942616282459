-- What a job set is as the server has it; session/settings follows in the same query.
reset all
