"""What lists of pages, changes and duplicates cost: they read by index, however much there is."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline.sql import changes, duplicates, pages

NOW = datetime.now(UTC)
_FILTERS = (NOW, NOW, True, True)


@pytest.fixture
async def site_id(database: Database, organisation_id: OrganisationId) -> UUID:
    """One small site among many pages of others."""
    async with database.owner() as owner:
        found = await owner.fetchval(_SITES, organisation_id)
        await owner.execute(_PAGES, organisation_id, found)
        await owner.execute("ANALYZE")
    assert isinstance(found, UUID)
    return found


async def test_lists_read_by_index(
    database: Database, organisation_id: OrganisationId, site_id: UUID
) -> None:
    last, first = 2**62, UUID(int=0)
    statements: Mapping[str, tuple[Any, ...]] = {
        pages._PAGES_OF_ORGANISATION: (organisation_id, first, *_FILTERS, 100),
        pages._PAGES_OF_SITE: (site_id, 0, *_FILTERS, 100),
        pages._PAGES_OF_URL: (organisation_id, bytes(32), None, *_FILTERS),
        pages._SHOW_PAGES: ([first, site_id],),
        changes._LIST_CHANGES: (organisation_id, last, None, None, None, None, None, 100),
        changes._LIST_SITE_CHANGES: (site_id, last, None, None, None, None, None, None, 100),
        changes._WAS_UNLINKED: (organisation_id, bytes(32)),
        duplicates._LIST_GROUPS: (site_id, 0, 100),
        duplicates._MEMBERS_OF: (site_id, 1, 100),
    }
    async with database.tenant_tx(organisation_id) as conn:
        for statement, arguments in statements.items():
            plan = await conn.fetch(f"EXPLAIN {statement}", *arguments)
            lines = "\n".join(row[0] for row in plan)
            for table in ("page", "change", "likeness", "version", "url", "content_hash"):
                assert f"Seq Scan on {table}" not in lines, lines


_SITES = """
    WITH other AS (
        INSERT INTO tenancy.organisation (name) VALUES ('other') RETURNING id
    ),
    large AS (
        INSERT INTO store.site (organisation_id, name, base_url) SELECT id, 'large', 'x' FROM other
        RETURNING id, organisation_id
    ),
    page AS (
        INSERT INTO store.page (id, organisation_id, site_id, url_id, first_seen_at, last_seen_at)
        SELECT gen_random_uuid(), organisation_id, id, n, now(), now()
        FROM large, generate_series(1, 30000) n
        RETURNING *
    ),
    url AS (
        INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
        SELECT organisation_id, 1, true, '/' || n, sha256(n::text::bytea)
        FROM large, generate_series(1, 30000) n
    ),
    change AS (
        INSERT INTO store.change
            (organisation_id, site_id, page_id, url_id, status, source, detected_at)
        SELECT organisation_id, site_id, id, url_id, 'new', 'visit', now() FROM page
    ),
    likeness AS (
        INSERT INTO store.likeness
            (page_id, organisation_id, site_id, version_id, content_id, group_id, similarity)
        SELECT id, organisation_id, site_id, url_id, url_id, url_id / 2, 100 FROM page
    ),
    content AS (
        INSERT INTO store.content_hash (
            organisation_id, site_id, content_hash, first_seen_page_id, first_version_id,
            created_at, last_seen_at
        )
        SELECT organisation_id, site_id, sha256(url_id::text::bytea), id, url_id, now(), now()
        FROM page
    ),
    version AS (
        INSERT INTO store.version (
            organisation_id, page_id, number, visit_id, fetched_at, content_hash,
            extractor_version, text, markdown
        )
        SELECT organisation_id, id, 1, 1, now(), sha256('x'), 1, 'x', 'x' FROM page
    )
    INSERT INTO store.site (organisation_id, name, base_url) VALUES ($1, 'small', 'x') RETURNING id
"""
_PAGES = """
    INSERT INTO store.page (id, organisation_id, site_id, url_id, first_seen_at, last_seen_at)
    SELECT gen_random_uuid(), $1, $2, n, now(), now() FROM generate_series(1, 20) n
"""
