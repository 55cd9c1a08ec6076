"""schema.sql, the migrations and the typed functions agree."""

import subprocess

from tests.support.paths import SOURCE
from tools.sql.generate import content, generated
from tools.sql.schema import dump
from trapline.db import embedded
from trapline.settings import Settings


async def test_what_is_committed_is_what_would_be_generated(
    empty_dsn: str, server_settings: Settings
) -> None:
    files = await generated(SOURCE, empty_dsn, server_settings.database)
    assert files
    for path, text in files.items():
        assert content(path) == text, f"{path.name} is out of date: run `make sql`"


def test_schema_sql_builds_what_the_migrations_build(empty_dsn: str, dsn: str) -> None:
    schema = SOURCE / "db" / "sql" / "schema.sql"
    psql = [embedded.binary("psql"), "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1"]
    subprocess.run([*psql, "--file", schema, empty_dsn], check=True, capture_output=True)
    assert dump(empty_dsn) == dump(dsn)
