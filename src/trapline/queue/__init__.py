"""The durable queue: jobs, tasks, gates, lanes, leases, events, agents and their upkeep.

In: jobs with typed tasks, inside the caller's transaction. Out: each task's effect once, counters,
an event log. Owns the schema `queue`, and knows nothing of crawling.
"""
