"""A real local website that tests crawl, break and question.

In: a port. Out: HTTP as real servers speak it, well and badly; a log of every request; and the
truth about its own pages, so that a crawl can be compared with it. README.md says what is where.
"""
