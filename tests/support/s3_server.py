"""A real object store that speaks S3, for as long as a test session lasts."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from tests.support.settings import change_settings
from trapline.settings import Settings

PROGRAM = Path(sys.executable).with_name("weed")
KEY, SECRET = "access", "secret"
_PATIENCE = 60.0


def _port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the store."""
    home = tmp_path_factory.mktemp("objects")
    actions = ["Admin", "Read", "Write", "List"]
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": actions,
    }
    (home / "identities.json").write_text(json.dumps({"identities": [identity]}))
    s3 = _port()
    ports = [
        f"-{part}.port{kind}={_port()}"
        for part in ("master", "volume", "filer")
        for kind in ("", ".grpc")
    ]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                PROGRAM,
                "server",
                f"-dir={home}",
                "-ip=127.0.0.1",
                "-filer",
                "-s3",
                f"-s3.port={s3}",
                f"-s3.port.grpc={_port()}",
                f"-s3.config={home}/identities.json",
                "-volume.max=20",
                "-master.volumeSizeLimitMB=64",
                *ports,
            ],
            stdout=log,
            stderr=log,
        )
    try:
        _wait(s3, process)
        yield f"http://127.0.0.1:{s3}"
    finally:
        process.terminate()
        process.wait()


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        assert process.poll() is None, "the object store ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the object store did not start in time"
            time.sleep(0.1)


@pytest.fixture
def s3_settings(object_store: str, server_settings: Settings) -> Settings:
    """Settings that keep bytes in a prefix of their own."""
    return change_settings(
        server_settings,
        {
            "blobs": f"s3://blobs/{uuid4().hex}",
            "aws_endpoint_url": object_store,
            "aws_region": "us-east-1",
            "aws_access_key_id": SecretStr(KEY),
            "aws_secret_access_key": SecretStr(SECRET),
        },
    )
