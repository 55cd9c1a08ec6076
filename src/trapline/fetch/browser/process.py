"""Browser processes: started in a session of their own as an unprivileged user, and never left behind.

The kernel kills a browser when its parent dies (`setpriv --pdeathsig`), Chromium leaves when its pipe
closes, and `sweep` removes what an earlier run of this program left all the same.
"""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import structlog

from trapline.fetch.browser.binary import BrowserBinary, BrowserMissing, require_browser
from trapline.fetch.browser.commands import CloseBrowser, GetVersion, Version
from trapline.fetch.browser.connection import Connection, ProtocolError
from trapline.fetch.browser.socks_proxy import BYPASS_NOTHING
from trapline.fetch.browser.transports import PipeTransport, WebSocketTransport
from trapline.settings import BrowserSettings

log = structlog.get_logger()

# Port 9 discards what it gets, where anything listens there at all.
_NO_PROXY: Final = "socks5://127.0.0.1:9"
_PREFIX: Final = "trapline-browser-"
_LAUNCH_SECONDS: Final = 30.0
_CLOSE_SECONDS: Final = 3.0
_REAP_SECONDS: Final = 5.0
_SMALL_SHM: Final = 512 * 2**20
_MOST_ERROR_TEXT: Final = 300
_FEATURES_OFF: Final = (
    "Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,"
    "CertificateTransparencyComponentUpdater,PaintHolding,HttpsUpgrades,WebRtcHideLocalIpsWithMdns,"
    "IsolateOrigins,site-per-process,SpareRendererForSitePerProcess"
)
_FLAGS: Final = (
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--mute-audio",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--metrics-recording-only",
    "--password-store=basic",
    "--use-mock-keychain",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    "--force-color-profile=srgb",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--block-new-web-contents",
    # One is read by the shell, the other by the whole browser: without them UDP passes any proxy.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    f"--proxy-bypass-list={BYPASS_NOTHING}",
    f"--disable-features={_FEATURES_OFF}",
    "--js-flags=--max-old-space-size=512",
    "--disk-cache-size=33554432",
)


@dataclass(slots=True)
class BrowserProcess:
    """A running browser and our connection to it."""

    connection: Connection
    version: Version
    sandboxed: bool
    pid: int | None = None
    profile: Path | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def alive(self) -> bool:
        return not self.connection.closed.done()

    def memory(self) -> int:
        """Return the bytes of the process and its children: each page counted once."""
        return sum(_memory(process) for process in self.processes())

    def processes(self) -> list[psutil.Process]:
        if self.pid is None:
            return []
        try:
            root = psutil.Process(self.pid)
            return [root, *root.children(recursive=True)]
        except psutil.Error:
            return []

    async def close(self) -> None:
        """End the browser: politely, then its process group."""
        if self.alive and self.pid is not None:
            with suppress(ProtocolError):
                await self.connection.browser.call(CloseBrowser(), _CLOSE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await asyncio.shield(self.connection.closed)
        await self.kill()

    async def kill(self) -> None:
        """Kill the process group and wait for its end."""
        self.connection.close()
        if self.pid is not None:
            _kill_group(self.pid)
            await asyncio.to_thread(_reap, self.pid)
        if self.profile is not None:
            await asyncio.to_thread(shutil.rmtree, self.profile, ignore_errors=True)


async def launch(
    binary: BrowserBinary, proxy: str, *, user: str, sandbox: bool = True
) -> BrowserProcess:
    """Start a browser whose default proxy is `proxy`, or connect to one that runs elsewhere.

    Where the sandbox cannot work the browser runs without one; it is never root with a sandbox off
    unless the system has no such user.
    """
    if binary.kind == "remote":
        return await _connect(binary)
    try:
        return await _start(binary, proxy, user, sandbox=sandbox)
    except BrowserMissing:
        if not sandbox:
            raise
        log.warning("browser.no_sandbox", browser=binary.location)
        return await _start(binary, proxy, user, sandbox=False)


async def browser_version(settings: BrowserSettings) -> str:
    """Start the browser and end it; return what it is. Raises BrowserMissing if it does not start."""
    binary = require_browser(settings.location)
    process = await launch(binary, _NO_PROXY, user=settings.user)
    try:
        sandbox = "in its sandbox" if process.sandboxed else "without a sandbox"
        return f"{binary.location}, {process.version.product}, {sandbox}"
    finally:
        await process.close()


async def _connect(binary: BrowserBinary) -> BrowserProcess:
    connection = Connection()
    connection.transport = await WebSocketTransport.connect(connection, binary.location)
    version = await connection.browser.call(GetVersion())
    return BrowserProcess(connection, version, sandboxed=True)


async def _start(binary: BrowserBinary, proxy: str, user: str, *, sandbox: bool) -> BrowserProcess:
    profile = _new_profile(user)
    ours, theirs = socket.socketpair()
    errors = profile / "stderr"
    command = [*_privileges(user), *_command(binary, profile, proxy, sandbox=sandbox)]
    try:
        pid = _spawn(command, theirs, errors, profile)
    except OSError as error:
        shutil.rmtree(profile, ignore_errors=True)
        raise BrowserMissing(f"{binary.location} cannot be started: {error.strerror}.") from error
    finally:
        theirs.close()
    connection = Connection()
    connection.transport = PipeTransport(connection, ours)
    process = BrowserProcess(connection, Version(""), sandbox, pid, profile)
    try:
        process.version = await connection.browser.call(GetVersion(), _LAUNCH_SECONDS)
    except ProtocolError:
        text = errors.read_text(errors="replace")[-_MOST_ERROR_TEXT:].strip()
        await process.kill()
        raise BrowserMissing(f"{binary.location} does not start: {text or 'no message'}") from None
    except BaseException:
        await process.kill()
        raise
    return process


def _command(binary: BrowserBinary, profile: Path, proxy: str, *, sandbox: bool) -> list[str]:
    command = [binary.location, *_FLAGS, f"--proxy-server={proxy}", f"--user-data-dir={profile}"]
    if binary.kind == "chromium":
        command.append("--headless=new")
    if not sandbox:
        command.append("--no-sandbox")
    if _shared_memory() < _SMALL_SHM:
        command.append("--disable-dev-shm-usage")
    return command


def _spawn(command: list[str], end: socket.socket, errors: Path, home: Path) -> int:
    """Start the program in its own session; Chromium's pipe is the file descriptors 3 and 4."""
    null = os.open(os.devnull, os.O_RDWR)
    output = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    # Below 10 a descriptor could be one of those that are set up for the child.
    pipe = os.dup(end.fileno())
    while pipe <= 4:  # noqa: PLR2004 (the pipe's own numbers)
        pipe = os.dup(pipe)
    actions = [
        (os.POSIX_SPAWN_DUP2, null, 0),
        (os.POSIX_SPAWN_DUP2, null, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
        (os.POSIX_SPAWN_DUP2, pipe, 3),
        (os.POSIX_SPAWN_DUP2, pipe, 4),
    ]
    environment = {
        "HOME": str(home),
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
    }
    try:
        return os.posix_spawnp(command[0], command, environment, file_actions=actions, setsid=True)
    finally:
        for descriptor in (null, output, pipe):
            os.close(descriptor)


def _privileges(user: str) -> list[str]:
    """Return the prefix that drops root's privileges and ties the browser's life to ours."""
    if shutil.which("setpriv") is None:
        return []
    prefix = ["setpriv", "--pdeathsig", "KILL"]
    account = _account(user)
    if account is not None:
        ids = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
        prefix += [*ids, "--no-new-privs"]
    return [*prefix, "--"]


def _account(user: str) -> pwd.struct_passwd | None:
    """Return the account to change to; None where we are not root or there is no such user."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    try:
        return pwd.getpwnam(user)
    except KeyError:
        return None


def _new_profile(user: str) -> Path:
    profile = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    account = _account(user)
    if account is not None:
        os.chown(profile, account.pw_uid, account.pw_gid)
    return profile


def _shared_memory() -> int:
    try:
        entry = os.statvfs("/dev/shm")  # noqa: S108 (the kernel's own name)
    except OSError:
        return 0
    return entry.f_frsize * entry.f_blocks


def sweep() -> int:
    """Kill browsers and remove profiles of processes of ours that are gone; return their number."""
    orphans = [path for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if _orphaned(path)]
    for profile in orphans:
        _kill_users(profile)
        shutil.rmtree(profile, ignore_errors=True)
    return len(orphans)


def _orphaned(profile: Path) -> bool:
    owner = profile.name.removeprefix(_PREFIX).partition("-")[0]
    return owner.isdecimal() and not psutil.pid_exists(int(owner))


def _kill_users(profile: Path) -> None:
    argument = f"--user-data-dir={profile}"
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if argument in process.cmdline():
                process.kill()


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _reap(pid: int) -> None:
    deadline = time.monotonic() + _REAP_SECONDS
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.01)


def _memory(process: psutil.Process) -> int:
    with suppress(psutil.Error, AttributeError):
        info = process.memory_full_info()
        return int(getattr(info, "pss", info.uss))
    return 0
