"""Forms with files arrive whole, wherever the network cuts them."""

from collections.abc import Iterator, Sequence

import pytest
from starlette.requests import Request

from trapline.api import multipart
from trapline.errors import InvalidInput

FILES = {"one.md": b"# One\r\n--not the end", "empty.txt": b"", "two.bin": bytes(range(256))}


def form() -> bytes:
    fields = b'--cut\r\nContent-Disposition: form-data; name="applicationId"\r\n\r\nnotes\r\n'
    files = b"".join(
        b'--cut\r\nContent-Disposition: form-data; name="files"; filename="%b"\r\n\r\n%b\r\n'
        % (name.encode(), body)
        for name, body in FILES.items()
    )
    return fields + files + b"--cut--\r\n"


def asked(chunks: Sequence[bytes]) -> Request:
    messages: list[dict[str, object]] = [
        {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
    ]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> dict[str, object]:
        return messages.pop(0)

    headers = [(b"content-type", b"multipart/form-data; boundary=cut")]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


async def read(chunks: Sequence[bytes]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    async for part in multipart.parts(asked(chunks)):
        found[part.filename or part.name] = b"".join([piece async for piece in part.pieces()])
    return found


def cuts(body: bytes) -> Iterator[Sequence[bytes]]:
    for at in range(1, len(body)):
        yield body[:at], body[at:]
    for size in (1, 2, 3, 7, 50):
        yield [body[at : at + size] for at in range(0, len(body), size)]


async def test_every_part_arrives_wherever_the_form_is_cut() -> None:
    expected = {"applicationId": b"notes", **FILES}
    for chunks in cuts(form()):
        assert await read(chunks) == expected


async def test_what_nobody_reads_of_a_part_is_skipped() -> None:
    for chunks in cuts(form()):
        names = [part.filename or part.name async for part in multipart.parts(asked(chunks))]
        assert names == ["applicationId", *FILES]


async def test_a_form_that_ends_too_early_is_refused() -> None:
    body = form()
    for at in range(len(body) - len("--\r\n")):
        with pytest.raises(InvalidInput):
            await read([body[:at]])
