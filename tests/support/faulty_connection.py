"""A connection that fails at each statement of a transaction in turn: one statement later at each try."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import pytest

from trapline.db.pool import Database

_STATEMENTS: Final = frozenset({"execute", "executemany", "fetch", "fetchrow", "fetchval"})


class FaultyTransactions:
    """Makes every finishing transaction fail at its first statement, then at its second, and so on."""

    def __init__(self) -> None:
        self.injected = 0
        self._fail_at = 1

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = Database.system_tx

        @asynccontextmanager
        async def system_tx(database: Database, *, steady: bool = False) -> AsyncIterator[Any]:
            async with original(database, steady=steady) as conn:
                if not steady:
                    yield conn
                    return
                yield _FaultyConnection(conn, self)
                # It had fewer statements than were to succeed: it is committed.
                self._fail_at = 1

        monkeypatch.setattr(Database, "system_tx", system_tx)

    def check(self, statement: int) -> None:
        if statement == self._fail_at:
            self._fail_at += 1
            self.injected += 1
            raise asyncpg.SerializationError("injected")


class _FaultyConnection:
    def __init__(self, conn: Any, faults: FaultyTransactions) -> None:
        self._conn = conn
        self._faults = faults
        self._statements = 0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._conn, name)
        if name not in _STATEMENTS:
            return attribute

        async def run(*arguments: Any, **options: Any) -> Any:
            answer = await attribute(*arguments, **options)
            self._statements += 1
            self._faults.check(self._statements)
            return answer

        return run
