"""Metadata: title, author, date, language, structured data, branding, page type.

In: a parsed page. Out: fields of a Document. Pure functions.
"""
