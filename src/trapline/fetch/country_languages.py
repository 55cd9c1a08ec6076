"""Languages by country: the Accept-Language header of a visitor from a country.

A header does not change the address that requests come from, but many sites choose their language by
this header.
"""

from collections.abc import Iterable
from typing import Final

# The official languages, the most used first; English for countries that are not listed.
_SPOKEN: Final = {
    "ar": "AE BH DJ DZ EG EH IQ JO KM KW LB LY MA MR OM PS QA SA SD SO SY TD TN YE",
    "az": "AZ",
    "be": "BY",
    "bg": "BG",
    "bn": "BD",
    "bs": "BA",
    "ca": "AD",
    "cs": "CZ",
    "da": "DK GL",
    "de": "AT BE CH DE LI LU",
    "dv": "MV",
    "dz": "BT",
    "el": "CY GR",
    "es": "AR BO CL CO CR CU DO EC ES GQ GT HN MX NI PA PE PR PY SV UY VE",
    "et": "EE",
    "fa": "AF IR",
    "fi": "FI",
    "fil": "PH",
    "fo": "FO",
    "fr": (
        "BE BF BI BJ BL CA CD CF CG CH CI CM FR GA GF GN GP HT LU MC MF MG ML MQ NC NE PF PM RE"
        " RW SC SN TF TG VU WF YT"
    ),
    "ga": "IE",
    "he": "IL",
    "hi": "IN",
    "hr": "HR",
    "ht": "HT",
    "hu": "HU",
    "hy": "AM",
    "id": "ID",
    "is": "IS",
    "it": "CH IT SM VA",
    "ja": "JP",
    "ka": "GE",
    "kk": "KZ",
    "kl": "GL",
    "km": "KH",
    "ko": "KP KR",
    "ky": "KG",
    "lb": "LU",
    "lo": "LA",
    "lt": "LT",
    "lv": "LV",
    "mk": "MK",
    "mn": "MN",
    "ms": "BN MY",
    "mt": "MT",
    "my": "MM",
    "nb": "BV NO SJ",
    "ne": "NP",
    "nl": "AW BE BQ CW NL SR SX",
    "pl": "PL",
    "pt": "AO BR CV GW MO MZ PT ST TL",
    "ro": "MD RO",
    "ru": "BY KG KZ RU",
    "rw": "RW",
    "si": "LK",
    "sk": "SK",
    "sl": "SI",
    "sm": "WS",
    "sq": "AL XK",
    "sr": "BA ME RS",
    "sv": "AX FI SE",
    "sw": "KE TZ UG",
    "ta": "LK SG",
    "tg": "TJ",
    "th": "TH",
    "tk": "TM",
    "to": "TO",
    "tr": "CY TR",
    "uk": "UA",
    "ur": "PK",
    "uz": "UZ",
    "vi": "VN",
    "zh": "CN HK MO SG TW",
}
# Where the order of the table is not that of the country.
_FIRST: Final = {
    "BE": "nl",
    "BY": "ru",
    "CA": "en",
    "GL": "kl",
    "HT": "fr",
    "IE": "en",
    "IN": "en",
    "KE": "en",
    "LK": "si",
    "LU": "fr",
    "MO": "zh",
    "MT": "mt",
    "PH": "en",
    "PK": "en",
    "RW": "rw",
    "SG": "en",
    "SC": "en",
    "UG": "en",
    "VU": "en",
    "WS": "sm",
}


def languages_of(country: str | None) -> tuple[str, ...]:
    """Return what a browser in a country asks for, the best first: `("de-AT", "de")`."""
    if country is None:
        return ()
    code = country.upper()
    first = _FIRST.get(code)
    spoken = [] if first is None else [first]
    spoken += [language for language, places in _SPOKEN.items() if code in places.split()]
    return tuple(_regional(dict.fromkeys(spoken or ["en"]), code))


def _regional(languages: Iterable[str], country: str) -> Iterable[str]:
    for language in languages:
        yield f"{language}-{country}"
        yield language
