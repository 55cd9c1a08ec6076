"""From templates to pages. Every link and every piece of main content is noted as it is written."""

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tests.site.page import Link
from tests.site.prose import Prose, text_of

_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

NAVIGATION = (
    ("/journal/", "Journal"),
    ("/manual/", "Manual"),
    ("/forum/", "The Hearth"),
    ("/shop/", "Shop"),
    ("/trails/", "Trails"),
    ("/services/", "Services"),
    ("/events/", "Events"),
)
FOOTER = (
    ("/about/", "About us"),
    ("/contact/", "Contact"),
    ("/careers/", "Work with us"),
    ("/glossary/", "Glossary"),
    ("/downloads/", "Downloads"),
    ("/world/", "Readers abroad"),
    ("/status/", "Hut status"),
    ("/planner/", "Route planner"),
    ("/privacy/", "Privacy"),
    ("/terms/", "Terms of sale"),
    ("/all-pages/", "All pages"),
)


@dataclass(slots=True)
class Rendered:
    """What a template wrote, and what it said about it on the way."""

    body: str = ""
    links: list[Link] = field(default_factory=list)
    main: list[str] = field(default_factory=list)

    def a(
        self,
        href: str,
        text: str,
        css: str = "",
        *,
        nofollow: bool = False,
        hidden: bool = False,
        rest: str = "",
    ) -> Markup:
        """Write a link and note it. `rest` is further markup of the tag."""
        self.links.append(Link(href, text, nofollow=nofollow, hidden=hidden))
        attributes = f' class="{css}"' if css else ""
        attributes += ' rel="nofollow"' if nofollow else ""
        attributes += f" {rest}" if rest else ""
        # Hrefs and texts are our own; escaped all the same, for ampersands.
        return Markup(f'<a href="{escape(href)}"{attributes}>{escape(text)}</a>')  # noqa: S704

    def prose(self, prose: Prose) -> Markup:
        """Put written text in, with the links that it holds."""
        self.links.extend(prose.links)
        return Markup(prose.html)  # noqa: S704

    def main_content(self, caller: Any) -> Markup:
        """Note what stands between `call main()` and `endcall` as main content."""
        html = caller()
        self.main.append(html)
        return Markup(html)  # noqa: S704

    @property
    def main_text(self) -> str:
        return "\n".join(filter(None, map(text_of, self.main)))


def render(template: str, target: str, **context: Any) -> Rendered:
    """Render a template of `templates/`; it sees `a`, `prose`, `main` and the navigation."""
    rendered = Rendered()
    rendered.body = _environment.get_template(template).render(
        a=rendered.a,
        prose=rendered.prose,
        main=rendered.main_content,
        navigation=NAVIGATION,
        footer=FOOTER,
        target=target,
        **context,
    )
    return rendered
