"""The site that is crawled: Debian's documentation of Python and PostgreSQL behind an nginx of its own."""

import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.memory import free_port

FOLDERS = {
    "python": Path("/usr/share/doc/python3-doc/html"),
    "postgresql": Path("/usr/share/doc/postgresql-doc-15/html"),
}
PACKAGES = "nginx-light python3-doc postgresql-doc-15"

CONFIGURATION = """
daemon off;
worker_processes 1;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; text/plain txt; text/css css; application/javascript js; }}
    default_type application/octet-stream;
    access_log off;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000;
    server {{ listen 127.0.0.1:{port}; root {home}/site; }}
}}
"""
FRONT = '<title>Documentation</title><a href="python/index.html">Python</a> <a href="postgresql/index.html">PostgreSQL</a>'
ROBOTS = "User-agent: *\nDisallow: /private/\n"


@contextmanager
def serving() -> Iterator[str]:
    """Serve the documentation; yield its URL."""
    missing = [str(folder) for folder in FOLDERS.values() if not folder.is_dir()]
    if missing or shutil.which("nginx") is None:
        lacking = ", ".join(missing) or "nginx"
        raise SystemExit(f"bench-crawl needs {lacking}: apt-get install {PACKAGES}")
    with tempfile.TemporaryDirectory(prefix="trapline-site-") as directory:
        home, port = Path(directory), free_port()
        home.chmod(0o755)
        _build(home / "site")
        (home / "nginx.conf").write_text(CONFIGURATION.format(home=home, port=port))
        command = ["nginx", "-c", home / "nginx.conf", "-e", home / "error.log"]
        with subprocess.Popen(command) as process:
            try:
                url = f"http://127.0.0.1:{port}/"
                _wait(url)
                yield url
            finally:
                process.terminate()


def _build(root: Path) -> None:
    root.mkdir()
    (root / "index.html").write_text(FRONT)
    (root / "robots.txt").write_text(ROBOTS)
    for name, folder in FOLDERS.items():
        (root / name).symlink_to(folder)


def _wait(url: str) -> None:
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310 (our own nginx)
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nginx does not answer")
