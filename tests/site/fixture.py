"""The `site` fixture: one server a test process, a clean site a test."""

from collections.abc import Iterator

import pytest

from tests.site.site import Site, running


@pytest.fixture(scope="session")
def site_server() -> Iterator[Site]:
    """The server of this test process, in a thread: a blocked test does not stall it."""
    with running() as site:
        yield site


@pytest.fixture
def site(site_server: Site) -> Iterator[Site]:
    """A site with an empty log, no faults and no changes; fails the test if it broke itself."""
    site_server.reset()
    yield site_server
    errors = list(site_server.errors)
    site_server.reset()
    assert errors == []
