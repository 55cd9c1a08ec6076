"""Upkeep: small duties, each in its own module, run by whichever process holds the lock.

In: the database. Out: what each duty did, in queue.duty. No duty waits for another.
"""
