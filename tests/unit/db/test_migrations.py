"""What can be said of the migrations without a server."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.sql.generate import RELEASED, release
from trapline.db.migrate import NO_TRANSACTION, SQL, load
from trapline.errors import MigrationError

MIGRATIONS = SQL / "migrations"


def edited_since_release(migrations: Path) -> list[str]:
    """Return the released files that are missing or no longer what they were."""
    lines = [line.split() for line in (migrations / RELEASED).read_text().splitlines()]
    return [name for digest, name in lines if digest != _digest(migrations / name)]


def _digest(path: Path) -> str | None:
    return sha256(path.read_bytes()).hexdigest() if path.exists() else None


def squawk(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("squawk")
    return subprocess.run(
        [program, "--config", ROOT / ".squawk.toml", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_released_migration_was_edited() -> None:
    assert edited_since_release(MIGRATIONS) == [], "write the change as a new migration"


def test_an_edit_after_the_release_is_noticed(tmp_path: Path) -> None:
    migrations = write(tmp_path, {"0001_a.up.sql": "SELECT 1;", "0001_a.down.sql": "SELECT 2;"})
    release(tmp_path)
    assert edited_since_release(migrations) == []
    (migrations / "0001_a.down.sql").write_text("SELECT 3;")
    release(tmp_path)
    assert edited_since_release(migrations) == ["0001_a.down.sql"]


@pytest.mark.parametrize("path", sorted(MIGRATIONS.glob("*.up.sql")), ids=lambda path: path.stem)
def test_squawk_finds_no_danger(path: Path) -> None:
    alone = path.read_text().startswith(NO_TRANSACTION)
    done = squawk(*["--no-assume-in-transaction"] * alone, path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("CREATE INDEX i ON queue.task (id);", "require-concurrent-index-creation"),
        ("ALTER TABLE queue.task ALTER COLUMN id TYPE text;", "changing-column-type"),
        ("BEGIN; SELECT 1; COMMIT;", "transaction-nesting"),
    ],
)
def test_squawk_is_awake(tmp_path: Path, statement: str, rule: str) -> None:
    path = tmp_path / "0001_a.up.sql"
    path.write_text(statement)
    assert rule in squawk(path).stdout


def test_squawk_wants_statements_outside_a_transaction_to_bear_a_second_run(tmp_path: Path) -> None:
    path = tmp_path / "0001_a.up.sql"
    path.write_text("CREATE INDEX CONCURRENTLY i ON queue.task (id);")
    assert "prefer-robust-stmts" in squawk("--no-assume-in-transaction", path).stdout


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["0001_a.up.sql"], r"0001_a\.down\.sql is missing"),
        (["0001_a.down.sql"], r"0001_a\.up\.sql is missing"),
        (["1_a.up.sql"], "is named 0001_word"),
        (["0001_a.up.sql", "0001_a.down.sql", "0001_b.up.sql", "0001_b.down.sql"], "same number"),
    ],
)
def test_a_misnamed_migration_is_refused(tmp_path: Path, files: list[str], message: str) -> None:
    write(tmp_path, dict.fromkeys(files, "SELECT 1;"))
    with pytest.raises(MigrationError, match=message):
        load(tmp_path / "db" / "sql")


def write(source: Path, files: dict[str, str]) -> Path:
    migrations = source / "db" / "sql" / "migrations"
    migrations.mkdir(parents=True)
    for name, text in files.items():
        (migrations / name).write_text(text)
    return migrations
