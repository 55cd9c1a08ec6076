"""The sandbox for file readers: processes that can be killed, under hard limits.

In: a file's bytes and a deadline. Out: what a reader made of them, or an error.
"""
