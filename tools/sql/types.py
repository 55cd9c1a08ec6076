"""The Python type of each PostgreSQL type, as asyncpg encodes and decodes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

import asyncpg

from tools.sql.nullability import Origin
from tools.sql.queries import QueryError
from trapline import model
from trapline.db.connection import OwnConnection

PYTHON = {
    "bool": "bool",
    "bytea": "bytes",
    "date": "date",
    "float4": "float",
    "float8": "float",
    "int2": "int",
    "int4": "int",
    "int8": "int",
    "interval": "timedelta",
    "json": "str",
    "jsonb": "Any",
    "numeric": "Decimal",
    "oid": "int",
    "record": "Record",
    "time": "time",
    "timestamp": "datetime",
    "timestamptz": "datetime",
    "uuid": "UUID",
    "void": "None",
    "xid": "int",
    "xid8": "int",
    "pg_lsn": "int",
    "cidr": "IPv4Network | IPv6Network",
    "inet": "IPv4Address | IPv6Address | IPv4Interface | IPv6Interface",
    # The connection's codec decides.
    "halfvec": "Any",
    "vector": "Any",
} | dict.fromkeys(
    [
        "bpchar",
        "char",
        "citext",
        "ltree",
        "macaddr",
        "name",
        "regclass",
        "text",
        "tsquery",
        "tsvector",
        "varchar",
        "xml",
    ],
    "str",
)


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


IDS: Mapping[str, NewType] = {
    _snake(name): value
    for name, value in vars(model).items()
    if isinstance(value, NewType) and name.endswith("Id")
}
"""organisation_id → OrganisationId and so on, whatever trapline.model has."""


@dataclass(frozen=True, slots=True)
class Types:
    """The types of one database, by oid; and which columns hold the id of what."""

    rows: Mapping[int, asyncpg.Record]
    ids: Mapping[Origin, str]

    @classmethod
    async def read(cls, conn: OwnConnection) -> "Types":
        rows = await conn.fetch(
            "SELECT t.oid, n.nspname, t.typname, t.typtype, t.typelem, t.typbasetype, t.typcategory,"
            " ARRAY(SELECT enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid"
            "       ORDER BY e.enumsortorder) AS labels,"
            " ARRAY(SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = t.typrelid"
            "       AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) AS members,"
            " r.rngsubtype"
            " FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace"
            " LEFT JOIN pg_range r ON r.rngtypid = t.oid"
        )
        # A table's own id, and every column that refers to one.
        ids = await conn.fetch(
            "SELECT c.oid AS table, a.attnum, c.relname || '_id' AS id FROM pg_class c"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'id'"
            " UNION ALL "
            "SELECT f.conrelid, f.conkey[1], c.relname || '_id' FROM pg_constraint f"
            " JOIN pg_class c ON c.oid = f.confrelid"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = f.confkey[1]"
            " WHERE f.contype = 'f' AND cardinality(f.conkey) = 1 AND a.attname = 'id'"
        )
        return cls(
            {row["oid"]: row for row in rows},
            {(row["table"], row["attnum"]): row["id"] for row in ids},
        )

    def parameter(self, name: str, oid: int, *, nullable: bool) -> str:
        """Return the type of an argument; elements of a nullable array may be None too."""
        element = self._element(oid)
        if element is None:
            return self._python(oid, self._id(name, None))
        inner = self._python(element, self._id(name.removesuffix("s"), None), writes=True)
        return f"Sequence[{inner} | None]" if nullable else f"Sequence[{inner}]"

    def column(self, name: str, oid: int, origin: Origin | None) -> str:
        element = self._element(oid)
        if element is None:
            return self._python(oid, self._id(name, origin))
        return f"list[{self._python(element, self._id(name.removesuffix('s'), None))}]"

    def _element(self, oid: int) -> int | None:
        row = self._base(oid)
        return row["typelem"] if row["typcategory"] == b"A" and row["typelem"] else None

    def _base(self, oid: int) -> asyncpg.Record:
        row = self.rows[oid]
        return self._base(row["typbasetype"]) if row["typtype"] == b"d" else row

    def _python(self, oid: int, identity: str | None, *, writes: bool = False) -> str:
        row = self._base(oid)
        if row["typtype"] == b"e":
            return f"Literal{row['labels']!r}"
        if row["typtype"] == b"c":
            members = ", ".join(f"{self._python(m, None)} | None" for m in row["members"])
            return f"tuple[{members}]" if writes else "Record"
        if row["typtype"] == b"r":
            return f"Range[{self._python(row['rngsubtype'], None)}]"
        python = PYTHON.get(row["typname"])
        if python is None:
            raise QueryError(f"no Python type for {row['typname']}: add it to tools/sql/types.py")
        if identity is not None and IDS[identity].__supertype__.__name__ == python:
            return IDS[identity].__name__
        return python

    def _id(self, name: str, origin: Origin | None) -> str | None:
        """Return which id a name means: job_id, parent_job_id, or a column that refers to a job."""
        if origin is not None and self.ids.get(origin) in IDS:
            return self.ids[origin]
        return next((key for key in IDS if name == key or name.endswith(f"_{key}")), None)
