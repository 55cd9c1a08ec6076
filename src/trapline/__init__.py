"""Trapline turns websites and files into clean, searchable, versioned content in PostgreSQL."""

__version__ = "0.1.0"
