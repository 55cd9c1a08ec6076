"""Log lines as the program writes them, for the tests that read them."""

import logging
from collections.abc import Iterator

import pytest
import structlog


def pytest_configure() -> None:
    _write_plainly()


@pytest.fixture
def own_logs() -> Iterator[None]:
    """Let a test configure the logs: later ones in the same process write to no stream of its."""
    yield
    structlog.reset_defaults()
    _write_plainly()
    structlog.contextvars.clear_contextvars()
    logging.basicConfig(handlers=[], force=True)


def _write_plainly() -> None:
    """As by default, but for tracebacks: with all local variables one takes seconds to write."""
    *processors, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*processors, renderer])
