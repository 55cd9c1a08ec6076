"""PostgreSQL: the embedded server, connection pools, tenant transactions, migrations.

In: Settings. Out: connections inside a transaction whose role and organisation are set.
Owns the schemas `trapline`, `tenancy` and `auth`; every other schema is written by the package of its name.
"""
