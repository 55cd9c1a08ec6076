"""Whoever is killed, and however many: the server ends or recovers, and committed rows are there."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.embedded_client import EmbeddedHome, embedded_home, wait_for

CREATE = "CREATE TABLE IF NOT EXISTS entry (id int GENERATED ALWAYS AS IDENTITY)"
INSERT = "INSERT INTO entry DEFAULT VALUES RETURNING id"
COUNT = "SELECT count(*) FROM entry"


@pytest.fixture
def server_home(tmp_path: Path) -> Iterator[EmbeddedHome]:
    with embedded_home(tmp_path / "home") as server_home:
        yield server_home


def rows(server_home: EmbeddedHome) -> int:
    """Ask a newcomer, so that the next start is proven to work as well."""
    client = server_home.client(COUNT)
    count = client.answer()["values"][0]
    client.leave()
    return int(count)


def test_killing_one_of_several_users_leaves_the_server_to_the_others(
    server_home: EmbeddedHome,
) -> None:
    first, second = server_home.client(CREATE, INSERT), server_home.client()
    first.answer()
    second.answer()
    server = server_home.postmaster()
    first.kill()
    third = server_home.client(COUNT)
    assert third.answer()["values"] == [1]
    assert server_home.postmaster() == server
    assert len(server_home.watchers()) == 1


def test_killing_all_users_ends_the_server(server_home: EmbeddedHome) -> None:
    first = server_home.client(CREATE, INSERT)
    first.answer()
    second = server_home.client(INSERT)
    second.answer()
    kill(first.pid, second.pid)
    server_home.wait_until_gone()
    assert rows(server_home) == 2


def test_a_server_without_watcher_and_users_is_adopted(server_home: EmbeddedHome) -> None:
    client = server_home.client(CREATE, INSERT)
    client.answer()
    server = server_home.postmaster()
    kill(*server_home.watchers())
    client.kill()
    assert server_home.postmaster() == server
    assert rows(server_home) == 1
    server_home.wait_until_gone()


def test_a_user_replaces_a_killed_watcher_before_it_leaves(server_home: EmbeddedHome) -> None:
    client = server_home.client()
    client.answer()
    kill(*server_home.watchers())
    client.leave()
    server_home.wait_until_gone()


def test_a_killed_server_is_started_again_for_its_users(server_home: EmbeddedHome) -> None:
    server_home.client(CREATE, INSERT).answer()
    server = server_home.postmaster()
    kill(server)
    wait_for(lambda: server_home.postmaster() not in {None, server}, seconds=60)
    assert rows(server_home) == 1


def test_killing_everything_at_once_loses_nothing(server_home: EmbeddedHome) -> None:
    for expected in (1, 2, 3):
        client = server_home.client(CREATE, INSERT, COUNT)
        assert client.answer()["values"][2] == expected
        kill(*server_home.watchers(), client.pid, server_home.postmaster())
    assert rows(server_home) == 3
    server_home.wait_until_gone()


def test_backends_that_outlive_their_postmaster_are_ended(server_home: EmbeddedHome) -> None:
    """A busy backend does not notice that its postmaster is gone."""
    server_home.client(CREATE, INSERT).answer()
    idle = len(server_home.processes())
    server_home.client("SELECT count(*) FROM generate_series(1, 10000000000)")
    wait_for(lambda: len(server_home.processes()) > idle, seconds=60)
    kill(*server_home.watchers(), server_home.postmaster())
    assert rows(server_home) == 1


def test_a_server_that_hangs_is_ended_all_the_same(server_home: EmbeddedHome) -> None:
    client = server_home.client(CREATE, INSERT)
    client.answer()
    kill(server_home.postmaster(), by=signal.SIGSTOP)
    client.kill()
    server_home.wait_until_gone()
    assert rows(server_home) == 1


def test_an_interrupted_set_up_is_left_alone_and_done_again(server_home: EmbeddedHome) -> None:
    client = server_home.client()
    wait_for(lambda: any(server_home.directory.glob("data.unfinished-*/global")), seconds=60)
    client.kill()
    (unfinished,) = server_home.directory.glob("data.unfinished-*")
    started = server_home.client(CREATE, INSERT, COUNT)
    assert started.answer()["values"][2] == 1
    assert unfinished.exists()


def kill(*pids: int | None, by: signal.Signals = signal.SIGKILL) -> None:
    for pid in pids:
        assert pid is not None
        os.kill(pid, by)
        if by is signal.SIGKILL:
            # Until it is really dead it holds its locks.
            wait_for(lambda pid=pid: dead(pid))


def dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
