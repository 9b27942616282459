-- Has a look of several statements see one moment. Otherwise rows that leave a window between the look at
-- it and the look for its end (inspector/waiting_edge) would have as many behind it passed over unseen.
set transaction isolation level repeatable read, read only
