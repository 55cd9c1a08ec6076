"""Who asked a moment ago."""

from uuid import UUID

from trapline.api.principal_cache import PrincipalCache
from trapline.db.tenancy import Principal
from trapline.model import OrganisationId

WHO = Principal.administrator_of(OrganisationId(UUID(int=1)))
OTHER = Principal.administrator_of(OrganisationId(UUID(int=2)))


def test_someone_is_known_by_their_key_for_a_moment() -> None:
    now = 100.0
    met = PrincipalCache(clock=lambda: now)
    assert met.get("a") is None
    assert met.put("a", WHO) is WHO
    assert met.put(None, OTHER) is OTHER
    assert (met.get("a"), met.get(None), met.get("b")) == (WHO, OTHER, None)
    now += 11
    assert (met.get("a"), met.get(None)) == (None, None)


def test_the_last_that_was_found_out_counts() -> None:
    met = PrincipalCache()
    met.put("a", WHO)
    met.put("a", OTHER)
    assert met.get("a") is OTHER


def test_they_do_not_grow_for_ever() -> None:
    met = PrincipalCache()
    for number in range(10_050):
        met.put(str(number), WHO)
    assert met.get("0") is None
    assert met.get("10049") is WHO
