"""Commands for operators: the server, the database, organisations, keys, checks."""
