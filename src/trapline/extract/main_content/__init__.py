"""Main content: blocks of text, their features, a learned score for each, and the choice of them.

In: the outline of a page. Out: the blocks to keep, and the page's type. Pure functions.
"""
