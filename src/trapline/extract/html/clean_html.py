"""Cleaned HTML: the content's own markup, without what acts, styles or tracks."""

import re
from typing import Final

import turbohtml

from trapline.extract.html.url_resolution import Resolver

_ACTIVE: Final = "script,style,link,meta,noscript:empty,template,object,embed"
_KEPT: Final = frozenset(
    re.findall(
        r"[\w-]+",
        "href src alt title srcset lang dir id class colspan rowspan headers scope start reversed "
        "value type datetime cite width height poster controls open name role itemprop itemtype "
        "itemscope data-lang data-language display encoding alttext",
    )
)
_MAX_ELEMENTS: Final = 100_000


def clean_html(body: turbohtml.Element, resolver: Resolver) -> str:
    """The inside of the body; links and images are absolute, handlers and styles are gone."""
    body.remove(_ACTIVE)
    for number, element in enumerate(body.iter_elements()):
        if number > _MAX_ELEMENTS:
            break
        for name in [name for name in element.attrs if name not in _KEPT]:
            del element.attrs[name]
        for name in ("href", "src"):
            reference = element.attr(name)
            if reference and not reference.startswith(("#", "data:image/", "mailto:", "tel:")):
                element.attrs[name] = resolver.absolute(reference) or "#"
    return body.inner_html.strip()
