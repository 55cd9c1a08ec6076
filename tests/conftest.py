"""What tests share. Fixtures that need a server are in their own files and start it themselves."""

import os
import shutil
from collections.abc import Generator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine, not of the code.
settings.register_profile("trapline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trapline")

pytest_plugins = [
    "tests.support.debian",
    "tests.support.postgres",
    "tests.support.http_api",
    "tests.support.cli",
    "tests.site.fixture",
    "tests.support.log_output",
    "tests.support.marker_site",
    "tests.support.s3_server",
    "tests.support.scraper",
    "tests.support.ingest_api",
    "tests.support.serve_process",
]

# Without a compiler, or with the native library switched off, its tests are skipped and say so.
_NO_SKIPS: Final = (
    os.environ.get("CI") == "true"
    and os.environ.get("TRAPLINE_NATIVE") != "off"
    and shutil.which("cc") is not None
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail what is skipped in CI: there a test that does not run is a fault."""
    report = yield
    if _NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"Skipped, though this is CI and there is a compiler: {report.longrepr}"
    return report
