"""Endpoints for stored content: sites, pages, changes, duplicates."""
