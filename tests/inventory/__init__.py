"""The inventory of the reference documents: what docs/coverage.md must list, and whether it is true.

In: the page, the source tree, schema.sql. Out: a sentence for each thing that is wrong.
"""
