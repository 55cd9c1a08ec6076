"""URL in, bytes and a trace out.

In: a URL with its limits. Out: the final body and every request and redirect on the way.
Owns no table and knows no database.
"""
