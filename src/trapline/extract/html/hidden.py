"""What a page does not show: by attribute, by inline style, by a plain rule in a <style>."""

import re

import turbohtml

from trapline.extract.html import attribute_scan

_BY_ATTRIBUTE = "[hidden], [aria-hidden=true], [style*=none], [style*=hidden], template"
# A search for the plain word costs a tenth of an expression, and finds every spelling.
_HIDING = (("none", "display"), ("hidden", "visibility"))
# One element by its classes or its id. What depends on an ancestor or a state, scripts may change.
_SIMPLE = re.compile(r"[a-z]*(?:[.#][A-Za-z_][A-Za-z0-9_-]*)+")
_MAX_CSS = 200_000
_MAX_RULES = 200
_MAX_RULE_LENGTH = 4_000
_SELECTORS_A_LOOK = 100


def hidden_roots(
    tree: turbohtml.Document, attribute_flags: int = attribute_scan.EVERYTHING
) -> list[turbohtml.Element]:
    """The elements that are hidden; whatever is inside them is hidden with them.

    `attribute_flags` is what the page's source can hold.
    """
    by_attribute = attribute_flags & attribute_scan.HIDDEN
    found = tree.select(_BY_ATTRIBUTE) if by_attribute else tree.find_all("template")
    roots = [element for element in found if _hides(element)]
    selectors = sorted(_hiding_selectors(tree))
    for start in range(0, len(selectors), _SELECTORS_A_LOOK):
        roots += tree.select(",".join(selectors[start : start + _SELECTORS_A_LOOK]))
    return roots


def _hides(element: turbohtml.Element) -> bool:
    if element.tag in ("html", "body"):
        # Pages that scripts reveal once they have loaded are not hidden from a reader.
        return False
    style = element.attr("style")
    if style is None:
        return True
    attrs = element.attrs
    return "hidden" in attrs or attrs.get("aria-hidden") == "true" or bool(_declarations(style))


def _hiding_selectors(tree: turbohtml.Document) -> set[str]:
    """What a <style> hides outside any at-rule.

    What is hidden for one medium (`@media print`) is not hidden from a reader.
    """
    found: set[str] = set()
    budget = _MAX_CSS
    for style in tree.find_all("style"):
        if budget <= 0:
            break
        css = style.text[:budget]
        budget -= len(css)
        if not style.attr("media"):
            found.update(_hidden_by(css))
    return found


def _declarations(css: str) -> list[int]:
    """Where a style sheet or a style attribute says that something is not to be shown."""
    found: list[int] = []
    for value, name in _HIDING:
        position = css.find(value)
        while position >= 0 and len(found) < _MAX_RULES:
            head = css[max(0, position - 20) : position].rstrip()
            if head.endswith(":") and head[:-1].rstrip().lower().endswith(name):
                found.append(position)
            position = css.find(value, position + 1)
    return sorted(found)


def _hidden_by(css: str) -> list[str]:
    found: list[str] = []
    depth, counted = 0, 0
    for position in _declarations(css):
        start = css.rfind("{", max(position - _MAX_RULE_LENGTH, counted), position)
        if start < 0:
            continue
        depth += css.count("{", counted, start) - css.count("}", counted, start)
        counted = start
        if depth == 0:
            found += _simple_selectors(css[max(0, start - _MAX_RULE_LENGTH) : start])
    return found


def _simple_selectors(before: str) -> list[str]:
    end = max(before.rfind(mark) for mark in "{};/")
    selectors = (part.strip() for part in before[end + 1 :].split(","))
    return [selector for selector in selectors if _SIMPLE.fullmatch(selector)]
