"""Visiting pages: the handlers of a visit, what they look up, and what a batch of visits stores.

In: tasks of jobs that visit pages. Out: visits, page versions, link tasks and events.
Owns no table: `archive`, `store`, `frontier` and `queue` own the rows that a visit leaves.
"""
