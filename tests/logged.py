"""Log lines as the program writes them, for the tests that read them."""

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture
def own_logs() -> Iterator[None]:
    """Let a test configure the logs: later ones in the same process write to no stream of its."""
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.basicConfig(handlers=[], force=True)
