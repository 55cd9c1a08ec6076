"""Commands for knowledge: ingest, search, sources, applications, models."""
