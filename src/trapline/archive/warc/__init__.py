"""WARC 1.1, the format in which web archives exchange what they have: written and read as streams."""
