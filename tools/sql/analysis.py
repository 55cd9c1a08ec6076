"""What PostgreSQL says of a query: its parameters, its columns, whether a row is sure to come.

The query is prepared for its types, then stored as the body of a temporary SQL function, which
also takes DELETE, MERGE and writing CTEs, because pg_proc then shows the analysed tree.
"""

import contextlib
from dataclasses import dataclass

import asyncpg

from tools.sql import tree
from tools.sql.nullability import Analysis, Catalog, Origin, always_one_row
from tools.sql.queries import Query, QueryError
from tools.sql.types import Types
from trapline.db.connection import OwnConnection


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    nullable: bool
    origin: Origin | None


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything a typed function needs to know."""

    query: Query
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    always_one_row: bool


@dataclass(frozen=True, slots=True)
class Analyser:
    conn: OwnConnection
    catalog: Catalog
    types: Types

    @classmethod
    async def of(cls, conn: OwnConnection) -> "Analyser":
        """Read the catalog of a migrated database."""
        return cls(conn, await _catalog(conn), await Types.read(conn))

    async def signature(self, query: Query) -> Signature:
        """Return the types of a query, or say what is wrong with it."""
        try:
            return await self._signature(query)
        except asyncpg.PostgresError as error:
            raise QueryError(f"{query.name}: {error}") from error
        except QueryError as error:
            raise QueryError(f"{query.name}: {error}") from None

    async def _signature(self, query: Query) -> Signature:
        statement = await self.conn.prepare(query.sql)
        argument_oids = [parameter.oid for parameter in statement.get_parameters()]
        attributes = statement.get_attributes()
        parameters = tuple(
            Parameter(a.name, self.types.parameter(a.name, oid, nullable=a.nullable), a.nullable)
            for a, oid in zip(query.arguments, argument_oids, strict=True)
        )
        if not attributes:
            return Signature(query, parameters, (), always_one_row=False)
        body = await self._tree(query.sql, argument_oids)
        analysis = Analysis(self.catalog, tuple(a.nullable for a in query.arguments))
        columns = tuple(
            self._column(analysis, body, number, attribute.name, attribute.type.oid)
            for number, attribute in enumerate(attributes, start=1)
        )
        names = [column.name for column in columns]
        for name in names:
            if not name.isidentifier() or names.count(name) > 1:
                raise QueryError(f"column {name!r} needs a name of its own: AS name")
        return Signature(query, parameters, columns, always_one_row(body))

    def _column(
        self, analysis: Analysis, body: tree.Node, number: int, label: str, oid: int
    ) -> Column:
        name = label.removesuffix("!").removesuffix("?") if label != "?column?" else label
        origin = analysis.origin(body, number)
        nullable = analysis.column(body, number)
        if label != name:
            nullable = label.endswith("?")
        return Column(name, self.types.column(name, oid, origin), nullable, origin)

    async def _tree(self, sql: str, argument_oids: list[int]) -> tree.Node:
        arguments = await self.conn.fetchval(
            "SELECT string_agg(format_type(oid, NULL), ', ' ORDER BY n)"
            " FROM unnest($1::oid[]) WITH ORDINALITY AS a(oid, n)",
            argument_oids,
        )
        transaction = self.conn.transaction()
        await transaction.start()
        try:
            await self.conn.execute(
                f"CREATE FUNCTION pg_temp.analysed({arguments or ''}) RETURNS SETOF record"
                f" LANGUAGE sql BEGIN ATOMIC {sql}\n; END"
            )
            body = await self.conn.fetchval(
                "SELECT prosqlbody::text FROM pg_proc WHERE proname = 'analysed'"
                " AND pronamespace = pg_my_temp_schema()"
            )
        finally:
            # The failed statement is the news, not that its transaction cannot go on.
            with contextlib.suppress(asyncpg.InternalClientError):
                await transaction.rollback()
        return tree.first_query(tree.parse(body))


async def _catalog(conn: OwnConnection) -> Catalog:
    not_null = await conn.fetch(
        "SELECT attrelid, attnum FROM pg_attribute WHERE attnotnull AND attnum > 0"
    )
    views = await conn.fetch(
        "SELECT ev_class, ev_action::text AS action FROM pg_rewrite r"
        " JOIN pg_class c ON c.oid = r.ev_class"
        " WHERE c.relkind = 'v' AND rulename = '_RETURN' AND c.oid >= 16384"
    )
    operators = await conn.fetch("SELECT oid, oprname FROM pg_operator")
    functions = await conn.fetch(
        "SELECT oid, proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
    )
    return Catalog(
        frozenset((row["attrelid"], row["attnum"]) for row in not_null),
        {row["ev_class"]: tree.first_query(tree.parse(row["action"])) for row in views},
        {row["oid"]: row["oprname"] for row in operators},
        {row["oid"]: row["proname"] for row in functions},
    )
