"""Webhooks as Firecrawl sends them."""

import hashlib
import hmac
import json
from typing import Any
from uuid import uuid4


def hook(word: str, crawl: str, *pages: int, **more: Any) -> bytes:
    """A body as Firecrawl sends it."""
    data = [
        {
            "markdown": f"# Page {n}\n\nClock {n} of {crawl} is late.",
            "metadata": {
                "title": f"Page {n}",
                "sourceURL": f"https://example.com/{n}",
                "url": f"https://example.com/{n}",
                "statusCode": 200,
            },
        }
        for n in pages
    ]
    body = {
        "success": True,
        "type": f"crawl.{word}",
        "id": crawl,
        "webhookId": str(uuid4()),
        "data": data,
    }
    return json.dumps(body | more).encode()


def signed(body: bytes, secret: str) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Firecrawl-Signature": f"sha256={digest}", "Content-Type": "application/json"}
