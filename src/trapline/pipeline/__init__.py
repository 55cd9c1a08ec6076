"""The order of things: submit, then fetch, extract, store, spread, index, tell.

In: what a user asks for. Out: jobs, and handlers that the queue calls for their tasks.
Owns no table: it calls the owners inside one transaction.
"""
