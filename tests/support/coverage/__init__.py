"""The inventory of the reference documents: what docs/coverage must list, and whether it is true.

In: the pages, the source tree, schema.sql. Out: a sentence for each thing that is wrong.
"""
