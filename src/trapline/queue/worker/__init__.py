"""A worker process: it claims tasks, runs their handlers and finishes them in batches.

In: leased tasks. Out: finished attempts, statistics. Keeps lanes and leases in memory;
the rows belong to `trapline.queue`.
"""
