"""Lists, results, exports, usage and statistics: everything that people read of stored data.

In: a filter and a cursor. Out: rows, files and WARC records; WARC files also come back in.
Owns no table.
"""
