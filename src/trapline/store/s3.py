"""The S3 backend for blobs: one object for each, under a prefix."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final, Self
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store
from pydantic import SecretStr

from trapline.errors import SettingsError, Unavailable
from trapline.settings import BlobSettings

_HASH_BYTES: Final = 32
_LISTED_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class S3Backend:
    """A bucket, or a prefix of one."""

    name: ClassVar[str] = "s3"
    store: S3Store

    @classmethod
    def at(cls, place: str, settings: BlobSettings, *, retries: int = 3) -> Self:
        """Parse `s3://bucket/prefix`; endpoint and credentials are separate settings."""
        parts = urlsplit(place)
        if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
            raise SettingsError("TRAPLINE_BLOBS for an object store must be s3://bucket/prefix.")
        config = {
            "endpoint": settings.s3_endpoint,
            "region": settings.s3_region,
            "access_key_id": _secret(settings.s3_access_key),
            "secret_access_key": _secret(settings.s3_secret_key),
        }
        store = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            config={name: value for name, value in config.items() if value is not None},  # type: ignore[arg-type]
            client_options={"allow_http": True, "timeout": timedelta(seconds=60)},
            retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=30)},
        )
        return cls(store)

    async def write(self, new: Mapping[bytes, bytes]) -> None:
        for sha256, data in new.items():
            try:
                if not await self._exists(sha256):
                    await obstore.put_async(self.store, _path(sha256), data)
            except (BaseError, OSError) as error:
                raise Unavailable(f"The object store refused a write: {error}") from None

    async def read(self, sha256: bytes) -> bytes:
        try:
            response = await obstore.get_async(self.store, _path(sha256))
            return bytes(await response.bytes_async())
        except FileNotFoundError:
            raise Unavailable(f"The object of {sha256.hex()} is missing.") from None
        except (BaseError, OSError) as error:
            raise Unavailable(f"The object store does not answer: {error}") from None

    async def remove(self, hashes: Sequence[bytes]) -> None:
        if hashes:
            try:
                await obstore.delete_async(self.store, [_path(sha256) for sha256 in hashes])
            except (BaseError, OSError) as error:
                raise Unavailable(f"The object store refused a deletion: {error}") from None

    async def list_hashes(self) -> AsyncIterator[list[tuple[bytes, datetime]]]:
        try:
            async for part in obstore.list(self.store, chunk_size=_LISTED_AT_ONCE):
                found = [(_hash(entry["path"]), entry["last_modified"]) for entry in part]
                yield [(sha256, at) for sha256, at in found if sha256 is not None]
        except (BaseError, OSError) as error:
            raise Unavailable(f"The object store refused to list objects: {error}") from None

    async def _exists(self, sha256: bytes) -> bool:
        try:
            await obstore.head_async(self.store, _path(sha256))
        except FileNotFoundError:
            return False
        return True


def _path(sha256: bytes) -> str:
    name = sha256.hex()
    return f"{name[:2]}/{name[2:]}"


def _hash(path: str) -> bytes | None:
    """Return the hash of a path; None for an object that is no blob of ours."""
    try:
        sha256 = bytes.fromhex(path.replace("/", ""))
    except ValueError:
        return None
    return sha256 if len(sha256) == _HASH_BYTES and _path(sha256) == path else None


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()
