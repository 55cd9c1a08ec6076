"""Many rows, as months of use leave them, and what people ask of them.

In: a migrated database and a share of the whole (10 M finished tasks, 5 M queued, 1 M jobs, 20 M
measurements). Out: the rows, in the order of time; the documents' questions to put to them.
"""
