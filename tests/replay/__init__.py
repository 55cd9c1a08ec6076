"""Replay of real servers: answers from WARC files, byte for byte, under their own host names."""
