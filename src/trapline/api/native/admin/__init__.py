"""Endpoints for operators and owners: keys, members, organisations, limits, health, metrics."""
