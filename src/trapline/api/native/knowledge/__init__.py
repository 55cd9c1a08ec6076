"""Endpoints for knowledge: applications, sources, uploads, models, search."""
