"""A site's looks from a page's own markup: logo, colours, fonts. No style sheet is fetched."""

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import turbohtml

from trapline.extract.html.url_resolution import Resolver
from trapline.extract.metadata import jsonld
from trapline.extract.metadata.colours import colour_in, is_grey, luminance
from trapline.extract.metadata.page_metadata import read_metadata
from trapline.model import Metadata

_MAX_CSS = 300_000
_VARIABLE = re.compile(r"--([\w-]{1,80})\s*:\s*([^;}{]{1,200})")
_PROPERTIES = ("color", "background", "background-color", "font-family")
_ROLES = {
    "primary": ("primary", "brand", "main-color", "theme-color"),
    "secondary": ("secondary",),
    "accent": ("accent", "highlight", "link"),
    "background": ("background", "bg", "surface", "body-bg"),
    "textPrimary": ("text", "foreground", "body-color", "base-color"),
}
_GENERIC_FONTS = {
    "inherit", "initial", "unset", "sans-serif", "serif", "monospace", "system-ui", "ui-sans-serif", "cursive",
    "-apple-system", "blinkmacsystemfont", "ui-monospace", "ui-serif", "emoji", "fantasy", "none", "fontawesome",
}  # fmt: skip
_FAMILY = re.compile(r"[^\W\d_][\w .&-]{0,60}")
_DARK = 0.35
_MOST_FONTS = 6

Branding = dict[str, object]


def read_branding(
    tree: turbohtml.Document, resolver: Resolver, metadata: Metadata | None = None
) -> Branding:
    """Colour scheme, colours by role, fonts, logo and pictures; what is not found is left out."""
    metadata = metadata or read_metadata(tree, resolver)
    css = _css(tree)
    rules = list(_rules(css, tree))
    colours = _colours(css, rules, metadata)
    fonts = _fonts(tree, rules)
    logo = _logo(tree, resolver)
    image = metadata.declared.get("ogImage")
    images = {
        "logo": logo,
        "favicon": metadata.favicon,
        "ogImage": resolver.absolute(image) if isinstance(image, str) else None,
    }
    found: Branding = {
        "colorScheme": _scheme(tree, colours),
        "logo": logo,
        "colors": colours,
        "fonts": [{"family": family} for family in fonts],
        "typography": _typography(rules, fonts),
        "images": {name: url for name, url in images.items() if url},
    }
    return {name: value for name, value in found.items() if value}


def _css(tree: turbohtml.Document) -> str:
    parts: list[str] = []
    left = _MAX_CSS
    for style in tree.find_all("style"):
        parts.append(style.text[: max(left, 0)])
        left -= len(parts[-1])
    return "\n".join(parts)


def _rules(css: str, tree: turbohtml.Document) -> Iterator[tuple[str, str, str]]:
    """Selector, property and value of each declaration of a colour or font."""
    for rule in css.split("}"):
        selector, brace, declarations = rule.rpartition("{")
        if brace and (
            "color" in declarations or "back" in declarations or "font-f" in declarations
        ):
            yield from _declared(
                re.split(r"[{;]|\*/", selector[-300:])[-1].strip().lower(), declarations[:4_000]
            )
    for element in tree.select("body[style], header[style], button[style], h1[style]")[:50]:
        yield from _declared(element.tag, element.attr("style") or "")


def _declared(selector: str, declarations: str) -> Iterator[tuple[str, str, str]]:
    for declaration in declarations.split(";"):
        name, _, value = declaration.partition(":")
        name = name.strip().lower()
        if name in _PROPERTIES:
            yield selector, name, value.strip()[:300]


def _colours(css: str, rules: list[tuple[str, str, str]], metadata: Metadata) -> dict[str, str]:
    found = _from_variables(css)
    theme = metadata.declared.get("theme-color")
    if isinstance(theme, str) and (colour := colour_in(theme)) and not is_grey(colour):
        found.setdefault("primary", colour)
    for selector, name, value in rules:
        role = _role_of(selector, name)
        if role and (colour := colour_in(value)):
            found.setdefault(role, colour)
    common = _commonest(rules)
    if common:
        found.setdefault("primary", common)
    return found


def _role_of(selector: str, name: str) -> str | None:
    last = selector.rpartition(",")[2].strip()
    if last in ("body", "html", ":root"):
        return (
            "textPrimary"
            if name == "color"
            else "background"
            if name.startswith("background")
            else None
        )
    if last in ("a", "a:link") and name == "color":
        return "link"
    is_button = last in ("button", ".button", ".btn", ".btn-primary", ".wp-block-button__link")
    return "primary" if is_button and name.startswith("background") else None


def _from_variables(css: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _VARIABLE.finditer(css):
        name = match.group(1).lower()
        role = next(
            (r for r, words in _ROLES.items() if any(_is_named(name, word) for word in words)), None
        )
        if role and role not in found and (colour := colour_in(match.group(2))):
            found[role] = colour
    return found


def _is_named(name: str, word: str) -> bool:
    """`--color-primary` and `--primary` name the primary colour; `--primary-hover` does not."""
    return name == word or name.endswith("-" + word) or name in (word + "-color", word + "-500")


def _commonest(rules: list[tuple[str, str, str]]) -> str | None:
    colours = (colour_in(value) for _, name, value in rules if name != "font-family")
    counted = Counter(colour for colour in colours if colour and not is_grey(colour))
    return counted.most_common(1)[0][0] if counted else None


def _scheme(tree: turbohtml.Document, colours: dict[str, str]) -> str:
    root = tree.root
    classes = (root.attr("class") or "").split() if root else []
    if "dark" in classes or (root is not None and root.attr("data-theme") == "dark"):
        return "dark"
    background = colours.get("background")
    return "dark" if background and luminance(background) < _DARK else "light"


def _families(value: str) -> Iterator[str]:
    for part in value.split(","):
        family = part.replace("!important", "").strip().strip("\"'")
        if _FAMILY.fullmatch(family) and family.lower() not in _GENERIC_FONTS:
            yield family


def _fonts(tree: turbohtml.Document, rules: list[tuple[str, str, str]]) -> list[str]:
    counted: Counter[str] = Counter()
    for link in tree.find_all("link"):
        href = link.attr("href") or ""
        if "fonts.googleapis.com" in href or "fonts.bunny.net" in href:
            counted.update(dict.fromkeys(_served(href), 3))
    for _, name, value in rules:
        if name == "font-family":
            counted.update(list(_families(value))[:1])
    return [family for family, _ in counted.most_common(_MOST_FONTS)]


def _served(href: str) -> Iterator[str]:
    try:
        query = parse_qs(urlsplit(href).query)
    except ValueError:
        return
    for value in query.get("family", []):
        for family in value.split("|"):
            if name := family.partition(":")[0].strip():
                yield name


def _typography(rules: list[tuple[str, str, str]], fonts: list[str]) -> Branding:
    families: dict[str, str] = {}
    for selector, name, value in rules:
        first = next(_families(value), None) if name == "font-family" else None
        last = selector.rpartition(",")[2].strip()
        if first and last in ("body", "html", ":root"):
            families.setdefault("primary", first)
        elif first and last in ("h1", "h2", "h3", "h4", "h5", "h6"):
            families.setdefault("heading", first)
        elif first and last in ("code", "pre", "kbd"):
            families.setdefault("code", first)
    if fonts:
        families.setdefault("primary", fonts[0])
    return {"fontFamilies": families} if families else {}


def _logo(tree: turbohtml.Document, resolver: Resolver) -> str | None:
    for node in jsonld.read_nodes(tree):
        if url := _logo_of(node, resolver):
            return url
    images = tree.select(
        "header img, nav img, [class*=logo] img, [id*=logo] img, img[class*=logo], img[id*=logo]"
    )
    marked = [image for image in images[:100] if "logo" in _description(image)]
    home = [image for image in images[:100] if _leads_home(image, resolver)]
    return resolver.first(image.attr("src") or image.attr("data-src") for image in (*marked, *home))


def _logo_of(node: jsonld.Node, resolver: Resolver) -> str | None:
    logo = node.get("logo")
    if isinstance(logo, dict):
        logo = logo.get("url") or logo.get("contentUrl") or logo.get("@id")
    return resolver.absolute(logo) if isinstance(logo, str) else None


def _description(image: turbohtml.Element) -> str:
    parent = image.parent
    above = parent.attr("class") if isinstance(parent, turbohtml.Element) else None
    names = (image.attr(name) for name in ("class", "id", "alt", "src"))
    return " ".join(filter(None, (*names, above))).lower()


def _leads_home(image: turbohtml.Element, resolver: Resolver) -> bool:
    anchor = image.closest("a")
    home = resolver.absolute("/")
    return (
        anchor is not None
        and home is not None
        and resolver.absolute(anchor.attr("href") or "") == home
    )
