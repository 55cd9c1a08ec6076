"""CSS colours: read in any notation, written as #RRGGBB."""

import re

_HEX = re.compile(r"#([0-9a-fA-F]{3,8})\b")
_RGB = re.compile(r"rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})")
_HSL = re.compile(r"hsla?\(\s*([\d.]{1,6})(?:deg)?[\s,]+([\d.]{1,5})%[\s,]+([\d.]{1,5})%")
_NAMES = {
    "black": "#000000", "white": "#FFFFFF", "red": "#FF0000", "blue": "#0000FF", "green": "#008000",
    "navy": "#000080", "gray": "#808080", "grey": "#808080", "orange": "#FFA500", "purple": "#800080",
    "teal": "#008080", "maroon": "#800000", "yellow": "#FFFF00", "silver": "#C0C0C0",
}  # fmt: skip
_SHORT_HEX, _LONG_HEX = (3, 4), (6, 8)
_GREY_SPREAD = 18


def colour_in(text: str) -> str | None:
    """The first colour that a CSS value names."""
    if match := _HEX.search(text):
        return _from_hex(match.group(1))
    if match := _RGB.search(text):
        return _written(*(min(int(part), 255) for part in match.groups()))
    if match := _HSL.search(text):
        return _from_hsl(*(float(part) for part in match.groups()))
    words = text.lower().split()
    return next((_NAMES[word] for word in words if word in _NAMES), None)


def luminance(colour: str) -> float:
    """How light a colour is to the eye, from 0 to 1."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def is_grey(colour: str) -> bool:
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return max(parts) - min(parts) <= _GREY_SPREAD


def _written(red: int, green: int, blue: int) -> str:
    return f"#{red:02X}{green:02X}{blue:02X}"


def _from_hex(digits: str) -> str | None:
    if len(digits) in _SHORT_HEX:
        digits = "".join(digit * 2 for digit in digits[:3])
    return f"#{digits[:6].upper()}" if len(digits) in (*_LONG_HEX, 6) else None


def _from_hsl(hue: float, saturation: float, lightness: float) -> str:
    level, strength = min(lightness, 100) / 100, min(saturation, 100) / 100
    reach = strength * min(level, 1 - level)

    def part(offset: int) -> int:
        turn = (offset + hue / 30) % 12
        return round(255 * (level - reach * max(-1.0, min(turn - 3, 9 - turn, 1.0))))

    return _written(part(0), part(8), part(4))
