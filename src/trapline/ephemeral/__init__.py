"""Short-lived shared state: Postgres by default, Redis or Valkey when given.

In: small values with a time to live. Out: the same values, on any machine, until they expire.
Owns the schema `ephemeral`: entry.
"""
