"""Who asked a moment ago."""

from uuid import UUID

from trapline.api.acquaintances import Acquaintances
from trapline.db.tenancy import Principal
from trapline.model import OrganisationId

WHO = Principal.administrator_of(OrganisationId(UUID(int=1)))
OTHER = Principal.administrator_of(OrganisationId(UUID(int=2)))


def test_someone_is_known_by_their_key_for_a_moment() -> None:
    now = 100.0
    met = Acquaintances(clock=lambda: now)
    assert met.find("a") is None
    assert met.meet("a", WHO) is WHO
    assert met.meet(None, OTHER) is OTHER
    assert (met.find("a"), met.find(None), met.find("b")) == (WHO, OTHER, None)
    now += 11
    assert (met.find("a"), met.find(None)) == (None, None)


def test_the_last_that_was_found_out_counts() -> None:
    met = Acquaintances()
    met.meet("a", WHO)
    met.meet("a", OTHER)
    assert met.find("a") is OTHER


def test_they_do_not_grow_for_ever() -> None:
    met = Acquaintances()
    for number in range(10_050):
        met.meet(str(number), WHO)
    assert met.find("0") is None
    assert met.find("10049") is WHO
