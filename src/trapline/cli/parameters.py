"""Parameter types whose messages are for people: numbers with a least value, languages, limits."""

import re
from typing import Any

import click

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*|\*")


class AtLeast(click.ParamType[Any]):
    """A number that is not below a bound, or with `above` not equal to it either."""

    def __init__(
        self, least: float, *, kind: type[int] | type[float] = int, above: bool = False
    ) -> None:
        self.least = least
        self.kind = kind
        self.above = above
        self.name = "integer" if kind is int else "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = self.kind(value)
        except ValueError:
            what = "a whole number" if self.kind is int else "a number"
            self.fail(f"{value!r} is not {what}.", param, ctx)
        if not (number > self.least if self.above else number >= self.least):
            bound = f"more than {self.least}" if self.above else f"{self.least} or more"
            self.fail(f"must be {bound}, not {value}.", param, ctx)
        return number


class Language(click.ParamType[Any]):
    """A language tag (BCP 47), such as en or de-AT."""

    name = "language"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _LANGUAGE.fullmatch(value):
            self.fail(f"{value!r} is not a language; write it as en or de-AT.", param, ctx)
        return value


class Limit(click.ParamType[Any]):
    """A limit of one or more; `none` lifts it."""

    name = "integer|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return "none" if value == "none" else AtLeast(1).convert(value, param, ctx)
