"""Static assets: our one stylesheet, script and icon, named by their hash and compressed once."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import brotli  # type: ignore[import-untyped]
from starlette.requests import Request
from starlette.responses import Response

from trapline.errors import NotFound

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HASH_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Asset:
    """A file in each encoding that browsers accept."""

    media_type: str
    plain: bytes
    gzip: bytes
    brotli: bytes


@dataclass(frozen=True, slots=True)
class Assets:
    """All assets: `names` maps a file's name to its hashed name."""

    names: Mapping[str, str]
    files: Mapping[str, Asset]


@cache
def load() -> Assets:
    names, files = {}, {}
    for path in sorted(_FOLDER.iterdir()):
        body = path.read_bytes()
        digest = hashlib.sha256(body).hexdigest()[:_HASH_DIGITS]
        names[path.name] = f"{path.stem}.{digest}{path.suffix}"
        files[names[path.name]] = Asset(
            _TYPES[path.suffix], body, gzip.compress(body, 9, mtime=0), brotli.compress(body)
        )
    return Assets(names, files)


async def serve(request: Request, name: str) -> Response:
    """Answer with an asset; its name changes with its content, so browsers keep it for ever."""
    asset = load().files.get(name)
    if asset is None:
        raise NotFound("There is no such asset; reload the page.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    accepted = request.headers.get("accept-encoding", "")
    for encoding, body in (("br", asset.brotli), ("gzip", asset.gzip)):
        if encoding in accepted:
            headers["Content-Encoding"] = encoding
            return Response(body, media_type=asset.media_type, headers=headers)
    return Response(asset.plain, media_type=asset.media_type, headers=headers)
