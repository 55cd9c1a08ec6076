"""What the reference documents say about their databases: statements, tables, columns and types."""
