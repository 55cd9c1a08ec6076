"""Numbers and prices as shops write them: `1.299,00 €`, `$1,299.00`, `1 299 kr`."""

import re

_NUMBER = re.compile(r"-?\d[\d.,'\u2019\s\u00a0\u202f]*")
_SYMBOLS = {
    "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₴": "UAH",
    "zł": "PLN", "US$": "USD", "C$": "CAD", "A$": "AUD", "R$": "BRL", "$": "USD",
}  # fmt: skip
_CODE = re.compile(r"\b[A-Z]{3}\b")
_CENTS = 2


def number_in(text: str) -> float | None:
    """The first number of a text, whichever of comma and point its decimals follow."""
    match = _NUMBER.search(text[:200])
    if match is None:
        return None
    digits = re.sub(r"[\s\u00a0\u202f'\u2019]", "", match.group()).rstrip(".,")
    return float(_with_point(digits))


def currency_in(text: str) -> str | None:
    """The ISO 4217 code that a price names or whose sign it bears."""
    if match := _CODE.search(text[:200]):
        return match.group()
    return next((code for sign, code in _SYMBOLS.items() if sign in text[:200]), None)


def _with_point(digits: str) -> str:
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and point >= 0:
        decimal = "," if comma > point else "."
    elif comma >= 0:
        # One comma before two digits is a decimal comma; otherwise it separates thousands.
        is_decimal = digits.count(",") == 1 and len(digits) - comma - 1 <= _CENTS
        decimal = "," if is_decimal else "."
    else:
        decimal = "." if digits.count(".") <= 1 else ","
    thousands = "." if decimal == "," else ","
    whole, _, cents = digits.replace(thousands, "").rpartition(decimal)
    return f"{whole}.{cents}" if whole else cents
