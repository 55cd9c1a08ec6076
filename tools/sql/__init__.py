"""`make sql`: schema.sql from the migrations, and typed asyncpg functions from the named queries.

In: src/trapline/db/sql/{migrations,functions} and src/trapline/*/sql/*.sql.
Out: src/trapline/db/sql/schema.sql and, beside each file of queries, a module of its name.
PostgreSQL itself is the analyser: docs/decisions/002-typed-sql.md says why it is not sqlc.
"""
