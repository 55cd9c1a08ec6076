"""The remote tier: any endpoint that speaks OpenAI's embeddings, in bounded batches."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import aiohttp
import numpy as np

from trapline.errors import ModelMismatch, Unavailable
from trapline.knowledge.embedding.embedder import EmbeddingModel, Vectors, normalise
from trapline.settings import EmbeddingSettings

_ATTEMPTS: Final = 4
_LONGEST_PAUSE: Final = 60.0
_AGAIN: Final = frozenset({408, 409, 429, 500, 502, 503, 504})
_MOST_CHARACTERS: Final = 20_000


class EndpointEmbedder:
    """Asks an endpoint. What it is too busy for is asked again when it says so."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        if settings.url is None:
            raise Unavailable("Set TRAPLINE_EMBED_URL to an OpenAI-compatible endpoint.")
        self._url = f"{settings.url.rstrip('/')}/embeddings"
        self._settings = settings
        self._places = asyncio.Semaphore(settings.concurrency)
        self._model = EmbeddingModel(settings.model, settings.dimensions)

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self._model.dimension), np.float32)
        size = self._settings.batch
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout)
        async with aiohttp.ClientSession(timeout=timeout, headers=self._headers()) as session:
            parts = await asyncio.gather(
                *(self._part(session, texts[at : at + size]) for at in range(0, len(texts), size))
            )
        return normalise(np.concatenate(parts))

    def _headers(self) -> dict[str, str]:
        key = self._settings.key
        return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    async def _part(self, session: aiohttp.ClientSession, texts: Sequence[str]) -> Vectors:
        body = {
            "model": self._model.name,
            # An empty text is refused by most; a space has no meaning either.
            "input": [text[:_MOST_CHARACTERS] or " " for text in texts],
            "encoding_format": "float",
        }
        async with self._places:
            for attempt in range(1, _ATTEMPTS + 1):
                answer, pause, why = await self._ask(session, body)
                if answer is not None:
                    return self._read(answer, len(texts))
                if pause is None or attempt == _ATTEMPTS:
                    break
                await asyncio.sleep(min(max(pause, 0.5 * 2**attempt), _LONGEST_PAUSE))
        raise Unavailable(f"The embedding endpoint does not answer: {why}")

    async def _ask(
        self, session: aiohttp.ClientSession, body: dict[str, Any]
    ) -> tuple[Any, float | None, str]:
        """Ask once; without an answer, say how long to wait (None: not again) and why."""
        try:
            async with session.post(self._url, json=body, allow_redirects=False) as answer:
                if answer.status == 200:  # noqa: PLR2004 (OK)
                    return await answer.json(content_type=None), None, ""
                why = f"{answer.status} {(await answer.text())[:300]}"
                again = answer.status in _AGAIN
                if not again:
                    return None, None, why
                wish = answer.headers.get("Retry-After")
                return None, _seconds(wish, datetime.now(UTC)), why
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return None, 0.0, str(error) or type(error).__name__

    def _read(self, answer: Any, count: int) -> Vectors:
        try:
            rows = sorted(answer["data"], key=lambda one: one["index"])
            vectors = np.array([one["embedding"] for one in rows], np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise Unavailable(
                f"The embedding endpoint's answer cannot be read: {error!r}"
            ) from None
        if vectors.shape != (count, self._model.dimension):
            raise ModelMismatch(
                f"{self._model.name} answered with {vectors.shape}, not"
                f" {(count, self._model.dimension)}; see TRAPLINE_EMBED_DIMENSIONS."
            )
        return vectors


def _seconds(retry_after: str | None, now: datetime) -> float:
    """Read Retry-After, in seconds or as a date; what cannot be read leaves it to the usual pause."""
    given = (retry_after or "").strip()
    if given.isdecimal():
        return float(given)
    try:
        return (parsedate_to_datetime(given) - now).total_seconds()
    except (TypeError, ValueError):
        return 0.0
