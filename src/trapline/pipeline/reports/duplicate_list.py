"""The list of a site's duplicate groups: keyset pagination by age, or the largest first."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Final, Literal

from trapline.db.keyset import FIRST_NUMBER, LAST_NUMBER, KeysetList, Number, Order, Size, Start
from trapline.model import SiteId
from trapline.pipeline.sql import duplicates as queries
from trapline.pipeline.sql.duplicates import GroupRow

Sort = Literal["oldest", "newest", "largest"]

_BY_AGE: Final = attrgetter("group_id")
_LARGEST: Final = Start((2**31 - 1, LAST_NUMBER.key), tuple[Size, Number])
_ORDERS: Final[Mapping[Sort, Order[GroupRow]]] = {
    "oldest": Order(queries.list_groups, ("after",), _BY_AGE, FIRST_NUMBER),
    "newest": Order(queries.list_groups_newest, ("before",), _BY_AGE, LAST_NUMBER),
    "largest": Order(
        queries.list_groups_largest,
        ("before_pages", "before"),
        attrgetter("pages", "group_id"),
        _LARGEST,
    ),
}


def groups_of(site_id: SiteId) -> KeysetList[Sort, GroupRow]:
    """Select the groups that have more than one page."""
    return KeysetList(_ORDERS, {"site_id": site_id})
