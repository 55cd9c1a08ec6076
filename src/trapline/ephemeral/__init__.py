"""Short-lived shared state in a Redis or Valkey: to come. So far one is only asked whether it answers.

In: its URL. Out: whether it is there, for `/health` and `trapline doctor`.
Owns no table.
"""
