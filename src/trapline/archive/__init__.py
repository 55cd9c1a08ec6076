"""The provenance of every byte: visits, requests, redirects, files; WARC in and out.

In: the trace of a fetch. Out: rows that tell who asked what, when, and what came back.
Owns the schema `archive`: visit, visit_day, request, redirect, file, mimetype.
"""
