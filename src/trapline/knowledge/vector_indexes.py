"""Maintenance of HNSW indexes: one for each model with many vectors.

A model id belongs to one organisation, so each index holds the vectors of one organisation: no
search walks through those of another, or gets slower by them.
"""

from datetime import timedelta
from typing import Final

from trapline.db.connection import OwnConnection
from trapline.db.pool import Database
from trapline.knowledge.sql import search as queries
from trapline.logs import get_logger

log = get_logger(__name__)

# Fewer vectors are compared one by one as fast, with exact results.
INDEX_THRESHOLD: Final = 20_000
LONGEST: Final = timedelta(hours=1)

_LINKS: Final = 16
_CANDIDATES: Final = 64
# Bytes of a vector's node while the graph is built, beside its numbers: a million vectors of 256
# numbers need more than a gigabyte.
_NODE_BYTES: Final = 1_100


async def maintain_indexes(database: Database, *, many: int = INDEX_THRESHOLD) -> int:
    """Build the indexes that are missing and drop those that are not needed any more."""
    settings = database.settings
    # Where vectors are searched in Qdrant only, all indexes are obsolete.
    elsewhere = settings.vectors.qdrant_url is not None and not settings.vectors.qdrant_fallback
    async with database.owner() as conn:
        done = 0
        for name in await queries.obsolete_indexes(conn, few=2**31 - 1 if elsewhere else many // 2):
            # The name comes from the catalog, and matches vector_hnsw_ and digits.
            await conn.execute(f"DROP INDEX CONCURRENTLY IF EXISTS knowledge.{name}")
            done += 1
        crowded = [] if elsewhere else await queries.models_to_index(conn, many=many)
        for model in crowded:
            await _build(conn, model.model_id, model.dimension, settings.vectors.index_memory_mb)
            done += 1
    return done


async def _build(conn: OwnConnection, model_id: int, dimension: int, most_mb: int) -> None:
    count = await conn.fetchval(
        "SELECT count(*) FROM knowledge.vector WHERE model_id = $1", model_id
    )
    # A graph that does not fit in memory is built on disk, many times slower.
    needed = 64 + count * (dimension * 2 + _NODE_BYTES) // 2**20
    log.info("building a vector index", model=model_id, vectors=count)
    await conn.execute(
        "SELECT set_config('maintenance_work_mem', $1, false)", f"{min(needed, most_mb)}MB"
    )
    # Two integers of our own catalog; a partial index takes no parameters.
    await conn.execute(
        f"CREATE INDEX CONCURRENTLY vector_hnsw_{model_id:d} ON knowledge.vector"
        f" USING hnsw ((embedding::halfvec({dimension:d})) halfvec_ip_ops)"
        f" WITH (m = {_LINKS}, ef_construction = {_CANDIDATES}) WHERE model_id = {model_id:d}"
    )
