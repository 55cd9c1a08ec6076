"""Upkeep of the vectors' indexes: one HNSW index for each model with many vectors.

A model's number stands for an organisation and a model, so each index holds one organisation's
vectors alone: nobody's search walks through another's, or gets slower by them.
"""

from datetime import timedelta
from typing import Final

from trapline.db import pool
from trapline.db.connection import OwnConnection
from trapline.db.pool import Database
from trapline.knowledge.sql import searching as queries
from trapline.logs import get_logger

log = get_logger(__name__)

# Fewer vectors are compared one by one as fast, and exactly.
MANY: Final = 20_000
LONGEST: Final = timedelta(hours=1)

_LINKS: Final = 16
_CANDIDATES: Final = 64
# Bytes of a vector in the graph while it is built, beside its numbers: a million with 256 numbers
# outgrew a gigabyte.
_NODE_BYTES: Final = 1_100


async def tend_indexes(database: Database, *, many: int = MANY) -> int:
    """Build the indexes that are missing and drop those that are not needed any more."""
    settings = database.settings
    # Where vectors are searched in Qdrant and nowhere else, all indexes are forsaken.
    elsewhere = settings.qdrant_url is not None and not settings.qdrant_fallback
    async with pool.owner(database.dsn, database.settings) as conn:
        done = 0
        for name in await queries.forsaken_indexes(conn, few=2**31 - 1 if elsewhere else many // 2):
            # The name comes from the catalog, and matches vector_hnsw_ and digits.
            await conn.execute(f"DROP INDEX CONCURRENTLY IF EXISTS knowledge.{name}")
            done += 1
        crowded = [] if elsewhere else await queries.crowded_models(conn, many=many)
        for model in crowded:
            await _build(conn, model.model_id, model.dimension, settings.index_memory_mb)
            done += 1
    return done


async def _build(conn: OwnConnection, model_id: int, dimension: int, most_mb: int) -> None:
    count = await conn.fetchval(
        "SELECT count(*) FROM knowledge.vector WHERE model_id = $1", model_id
    )
    # A graph that does not fit is built on disk, many times slower.
    needed = 64 + count * (dimension * 2 + _NODE_BYTES) // 2**20
    log.info("an index over vectors is built", model=model_id, vectors=count)
    await conn.execute(
        "SELECT set_config('maintenance_work_mem', $1, false)", f"{min(needed, most_mb)}MB"
    )
    # Two integers of our own catalog; a partial index takes no parameters.
    await conn.execute(
        f"CREATE INDEX CONCURRENTLY vector_hnsw_{model_id:d} ON knowledge.vector"
        f" USING hnsw ((embedding::halfvec({dimension:d})) halfvec_ip_ops)"
        f" WITH (m = {_LINKS}, ef_construction = {_CANDIDATES}) WHERE model_id = {model_id:d}"
    )
