"""Maintenance: periodic duties, each in its own module, run by the process that holds the lock.

In: the database. Out: the result of each duty, in queue.duty. No duty waits for another.
"""
