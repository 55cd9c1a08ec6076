"""Whoever is killed, and however many: the server ends or recovers, and committed rows are there."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lodger import Household, household, wait_for

CREATE = "CREATE TABLE IF NOT EXISTS entry (id int GENERATED ALWAYS AS IDENTITY)"
INSERT = "INSERT INTO entry DEFAULT VALUES RETURNING id"
COUNT = "SELECT count(*) FROM entry"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Household]:
    with household(tmp_path / "home") as house:
        yield house


def rows(house: Household) -> int:
    """Ask a newcomer, so that the next start is proven to work as well."""
    lodger = house.lodger(COUNT)
    count = lodger.answer()["values"][0]
    lodger.leave()
    return int(count)


def test_killing_one_of_several_users_leaves_the_server_to_the_others(house: Household) -> None:
    first, second = house.lodger(CREATE, INSERT), house.lodger()
    first.answer()
    second.answer()
    server = house.postmaster()
    first.kill()
    third = house.lodger(COUNT)
    assert third.answer()["values"] == [1]
    assert house.postmaster() == server
    assert len(house.watchers()) == 1


def test_killing_all_users_ends_the_server(house: Household) -> None:
    first = house.lodger(CREATE, INSERT)
    first.answer()
    second = house.lodger(INSERT)
    second.answer()
    kill(first.pid, second.pid)
    house.wait_until_gone()
    assert rows(house) == 2


def test_a_server_without_watcher_and_users_is_adopted(house: Household) -> None:
    lodger = house.lodger(CREATE, INSERT)
    lodger.answer()
    server = house.postmaster()
    kill(*house.watchers())
    lodger.kill()
    assert house.postmaster() == server
    assert rows(house) == 1
    house.wait_until_gone()


def test_a_user_replaces_a_killed_watcher_before_it_leaves(house: Household) -> None:
    lodger = house.lodger()
    lodger.answer()
    kill(*house.watchers())
    lodger.leave()
    house.wait_until_gone()


def test_a_killed_server_is_started_again_for_its_users(house: Household) -> None:
    house.lodger(CREATE, INSERT).answer()
    server = house.postmaster()
    kill(server)
    wait_for(lambda: house.postmaster() not in {None, server}, seconds=60)
    assert rows(house) == 1


def test_killing_everything_at_once_loses_nothing(house: Household) -> None:
    for expected in (1, 2, 3):
        lodger = house.lodger(CREATE, INSERT, COUNT)
        assert lodger.answer()["values"][2] == expected
        kill(*house.watchers(), lodger.pid, house.postmaster())
    assert rows(house) == 3
    house.wait_until_gone()


def test_backends_that_outlive_their_postmaster_are_ended(house: Household) -> None:
    """A busy backend does not notice that its postmaster is gone."""
    house.lodger(CREATE, INSERT).answer()
    idle = len(house.processes())
    house.lodger("SELECT count(*) FROM generate_series(1, 10000000000)")
    wait_for(lambda: len(house.processes()) > idle, seconds=60)
    kill(*house.watchers(), house.postmaster())
    assert rows(house) == 1


def test_a_server_that_hangs_is_ended_all_the_same(house: Household) -> None:
    lodger = house.lodger(CREATE, INSERT)
    lodger.answer()
    kill(house.postmaster(), by=signal.SIGSTOP)
    lodger.kill()
    house.wait_until_gone()
    assert rows(house) == 1


def test_an_interrupted_set_up_is_left_alone_and_done_again(house: Household) -> None:
    lodger = house.lodger()
    wait_for(lambda: any(house.directory.glob("data.unfinished-*/global")), seconds=60)
    lodger.kill()
    (unfinished,) = house.directory.glob("data.unfinished-*")
    started = house.lodger(CREATE, INSERT, COUNT)
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
