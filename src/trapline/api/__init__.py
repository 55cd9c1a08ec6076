"""HTTP at the edge: requests are parsed into typed values, answers are built from them.

In: HTTP requests. Out: HTTP answers. `native` is our own API, `firecrawl` translates theirs.
Owns no table and holds no business logic.
"""
