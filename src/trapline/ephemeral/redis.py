"""Redis or Valkey, when REDIS_URL is set."""

from redis import asyncio as client
from redis.exceptions import RedisError

_TIMEOUT = 2.0


async def ping(url: str) -> bool:
    """Tell whether the server answers within two seconds."""
    connection = client.Redis.from_url(
        url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT
    )
    try:
        await connection.ping()
    except (RedisError, OSError):
        return False
    else:
        return True
    finally:
        await connection.aclose()
