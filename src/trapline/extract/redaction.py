"""Redaction of personal data in texts: e-mail addresses, phone numbers, cards, IBANs, IP addresses, secrets.

Patterns find what has a form; numbers with a checksum are verified. Names of people and places have no
form: the caller passes them as `names`. All patterns take linear time, whatever the text is.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, Literal

Entity = Literal["PERSON", "EMAIL", "PHONE", "LOCATION", "FINANCIAL", "SECRET"]
Style = Literal["tag", "mask", "remove"]
ENTITIES: Final[tuple[Entity, ...]] = (
    "PERSON",
    "EMAIL",
    "PHONE",
    "LOCATION",
    "FINANCIAL",
    "SECRET",
)
WITHOUT_FORM: Final[frozenset[Entity]] = frozenset({"PERSON", "LOCATION"})
"""The entities that only a language model finds; IP addresses are locations with a form."""

_SECRETS: Final = (
    re.compile(
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,20000}?-----END [A-Z ]{0,40}PRIVATE KEY-----"
    ),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    re.compile(
        r"\b(?:sk|pk|rk|fc|gh[opsu]|github_pat|glpat|xox[abpr])[-_][\w-]{16,}"
        r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"
    ),
    re.compile(r"(?i)(?<=\bbearer )[\w.~+/=-]{16,}"),
    re.compile(
        r"(?i)\b(?:password|passwd|secret|api[_-]?key|access[_-]?token)\s{0,3}[:=]\s{0,3}\S{4,}"
    ),
    # The number of a United States social security card.
    re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"),
)
_EMAIL: Final = re.compile(
    r"(?<![\w.+%'-])[\w.+%'-]++(?:@|\(at\)|\[at\]|%40|&#64;)[\w-]++(?:\.[\w-]++)+"
)
_IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b")
_CARD: Final = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_IPV4: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)")
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
_PHONE: Final = re.compile(r"(?<![\w+.,-])\+?\(?\d[\d\u00a0 ()./-]{5,28}\d(?!\w)")
_DATE: Final = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:[. \u00a0]\d{3})+")
_LONGEST_PHONE: Final = 15
_SHORTEST_PHONE: Final = 7
_SHORTEST_NATIONAL: Final = 9
_IBAN_MODULUS: Final = 97
_SHORTEST_NAME: Final = 2


@dataclass(frozen=True, slots=True)
class Redaction:
    """What to redact, and what stands in its place."""

    entities: frozenset[Entity] = frozenset(ENTITIES)
    style: Style = "tag"
    aggressive: bool = False
    """Whether numbers that only may be phone numbers are redacted too."""
    names: tuple[tuple[str, Entity], ...] = ()
    """Names of people and places, found by someone else, with what they are."""

    def with_names(self, names: Iterable[tuple[str, Entity]]) -> "Redaction":
        """Also redact these names, the longest first."""
        usable = {
            (name.strip(), entity)
            for name, entity in names
            if entity in self.entities and len(name.strip()) >= _SHORTEST_NAME
        }
        ordered = sorted(usable, key=lambda pair: (-len(pair[0]), pair))
        return replace(self, names=tuple(ordered))

    def text(self, text: str) -> str:
        """Return a text without the personal data."""
        for entity, find in self._steps():
            if entity in self.entities:
                text = find(text, partial(self._replace, entity))
        for name, entity in self.names:
            pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
            text = pattern.sub(partial(self._replaced, entity), text)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value with all of its strings redacted; keys stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self.value(item) for name, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list | tuple) else value

    def _steps(self) -> tuple[tuple[Entity, "Find"], ...]:
        # Forms that contain others come first: an IBAN has digits that look like a phone number.
        return (
            ("SECRET", _sub_secrets),
            ("EMAIL", partial(_sub_where, _EMAIL, None)),
            ("FINANCIAL", partial(_sub_where, _IBAN, _is_iban)),
            ("FINANCIAL", partial(_sub_where, _CARD, _is_card)),
            ("LOCATION", partial(_sub_where, _IPV4, _is_address)),
            ("LOCATION", partial(_sub_where, _IPV6, _is_address)),
            ("PHONE", partial(_sub_where, _PHONE, partial(_is_phone, eager=self.aggressive))),
        )

    def _replace(self, entity: Entity, text: str) -> str:
        if self.style == "tag":
            return f"<{entity}>"
        return "*" * len(text) if self.style == "mask" else ""

    def _replaced(self, entity: Entity, match: re.Match[str]) -> str:
        return self._replace(entity, match[0])


Replace = Callable[[str], str]
Find = Callable[[str, Replace], str]


def _sub_secrets(text: str, replacement: Replace) -> str:
    for pattern in _SECRETS:
        text = _sub_where(pattern, None, text, replacement)
    return text


def _sub_where(
    pattern: re.Pattern[str],
    is_real: Callable[[str], bool] | None,
    text: str,
    replacement: Replace,
) -> str:
    def replaced(match: re.Match[str]) -> str:
        return replacement(match[0]) if is_real is None or is_real(match[0]) else match[0]

    return pattern.sub(replaced, text)


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


def _is_card(text: str) -> bool:
    """Verify a card number by the Luhn algorithm."""
    digits = [int(digit) for digit in _digits(text)]
    doubled = (2 * digit - 9 * (digit > 4) for digit in digits[-2::-2])  # noqa: PLR2004 (its digit sum)
    return any(digits) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """Verify an IBAN by its check digits (ISO 7064, MOD 97-10)."""
    joined = text.replace(" ", "")
    number = "".join(str(int(character, 36)) for character in joined[4:] + joined[:4])
    return int(number) % _IBAN_MODULUS == 1


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_phone(text: str, *, eager: bool) -> bool:
    """Tell a phone number from dates, amounts and other numbers."""
    digits = _digits(text)
    if not _SHORTEST_PHONE <= len(digits) <= _LONGEST_PHONE:
        return False
    if _DATE.fullmatch(text) or _THOUSANDS.fullmatch(text):
        return False
    if text.startswith(("+", "00")) or eager:
        return True
    grouped = len(digits) < len(text)
    return len(digits) >= _SHORTEST_NATIONAL and (grouped or digits.startswith("0"))
