"""Time zone and position of a country, from the time zone database's own table of places."""

import re
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

_POSITION: Final = re.compile(r"([+-])(\d{2})(\d{2})(?:\d{2})?([+-])(\d{3})(\d{2})(?:\d{2})?")


class Location(NamedTuple):
    """Where a visitor of a country is taken to be: its first zone's principal place."""

    timezone: str
    latitude: float
    longitude: float


def location_of(country: str | None) -> Location | None:
    """Return the location of an ISO 3166 country code; None if it has no time zone."""
    return None if country is None else _locations().get(country.upper())


@cache
def _locations() -> dict[str, Location]:
    table: dict[str, Location] = {}
    for line in files("tzdata").joinpath("zoneinfo/zone.tab").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        country, position, zone = line.split("\t")[:3]
        parts = _POSITION.fullmatch(position)
        if parts is not None:
            table.setdefault(
                country,
                Location(zone, _degrees(*parts.group(1, 2, 3)), _degrees(*parts.group(4, 5, 6))),
            )
    return table


def _degrees(sign: str, degrees: str, minutes: str) -> float:
    value = int(degrees) + int(minutes) / 60
    return -value if sign == "-" else value
