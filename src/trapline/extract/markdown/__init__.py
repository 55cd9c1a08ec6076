"""Markdown: a pruned tree rendered, with code, tables, footnotes, formulas and links made ours.

In: the chosen part of a tree. Out: markdown text. Pure functions.
"""
