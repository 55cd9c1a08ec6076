"""Answers for a caller who waits: scrape, map, parse, extract by a language model, web search.

In: one request of one caller. Out: its answer, and the same provenance as a queued job leaves.
Owns no table.
"""
