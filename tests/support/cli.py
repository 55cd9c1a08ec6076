"""The real `trapline` program as a subprocess, on a database of its own."""

import asyncio
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(sys.executable).with_name("trapline")


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Trapline:
    """Runs commands with one environment."""

    environment: dict[str, str]
    directory: Path

    async def __call__(self, *arguments: str, given: str = "", **variables: str) -> Outcome:
        process = await self.start(*arguments, **variables)
        out, err = await process.communicate(given.encode())
        assert process.returncode is not None
        return Outcome(process.returncode, out.decode(), err.decode())

    async def start(self, *arguments: str, **variables: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            PROGRAM,
            *arguments,
            cwd=self.directory,
            env=self.environment | variables,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def serving(self, *arguments: str) -> tuple[asyncio.subprocess.Process, str]:
        """Start the server on a free port; return it with its URL once it says that it serves."""
        process = await self.start("serve", "--port", "0", *arguments)
        assert process.stderr is not None
        async for line in process.stderr:
            found = re.search(r'"url": "(http://[^"]+)"', line.decode())
            if found:
                return process, found[1]
        raise AssertionError(f"the server ended with {await process.wait()}")


@pytest.fixture
def trapline(empty_dsn: str, tmp_path: Path) -> Trapline:
    """The program on an external, empty database: it must set up everything by itself."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return Trapline(
        kept | {"DATABASE_URL": empty_dsn, "TRAPLINE_HOME": str(tmp_path / "home")}, tmp_path
    )
