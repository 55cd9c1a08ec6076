"""The replay server, shared by the tests of one process."""

from collections.abc import Iterator

import pytest

from tests.replay.recordings import DATA, read_recordings, write_own
from tests.replay.server import ReplayServer, directory, replaying


@pytest.fixture(scope="session")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayServer]:
    """Recorded servers of the data sets, if they are there, and our own."""
    own = write_own(tmp_path_factory.mktemp("replay") / "own.warc.gz")
    try:
        with replaying(read_recordings([own, *directory(DATA)])) as server:
            yield server
    except PermissionError:
        pytest.skip("Recorded URLs have the ports 80 and 443, which only root may open here.")
