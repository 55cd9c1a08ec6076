"""A durable, fenced, fair queue that knows nothing of crawling.

In: jobs and tasks with a kind and a payload. Out: leased tasks, finished jobs, numbered events.
Owns the schema `queue`: job, ready, leased, done, gate, lane, event, schedule, agent.
"""
