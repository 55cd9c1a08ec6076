"""The order of an extraction: decode, parse once, describe, choose the main content, render.

Modules that describe a page (`metadata`, `links`, `structured`, …) take the parsed
`turbohtml.Document` and the page's URL and return frozen dataclasses. They run before the tree is
pruned to its main content. Files that are not HTML go to `documents`.
"""

from typing import Final

import numpy as np
import turbohtml
from msgspec import Struct, structs

from trapline.extract.files import (
    TEXT_KINDS,
    Kind,
    Limits,
    decode_text,
    kind_of,
    read_document,
)
from trapline.extract.gc_pause import without_gc
from trapline.extract.html.attribute_scan import scan_attributes
from trapline.extract.html.charset import DecodedText, decode
from trapline.extract.html.clean_html import clean_html
from trapline.extract.html.images import read_images
from trapline.extract.html.links import read_links
from trapline.extract.html.outline import Flags, Outline, find_rows, read_outline
from trapline.extract.html.url_resolution import Resolver
from trapline.extract.main_content.fallback import fallback_text, requires_scripts
from trapline.extract.main_content.model_input import Features
from trapline.extract.main_content.pruning import open_templates, prune
from trapline.extract.main_content.scorer import Scorer, likeliest_type, shipped_scorer
from trapline.extract.main_content.selection import (
    Choice,
    choice_of,
    choose,
    chosen_text,
    with_headline,
)
from trapline.extract.markdown import renderer
from trapline.extract.markdown.link_targets import LinkTargets
from trapline.extract.metadata.branding import read_branding
from trapline.extract.metadata.head import Head, read_head
from trapline.extract.metadata.page_metadata import describe_text, read_metadata
from trapline.extract.metadata.page_type_hints import read_hints
from trapline.extract.metadata.structured_data import read_structured
from trapline.extract.metadata.structured_only import NOTE, structured_description
from trapline.extract.summary import summarise
from trapline.model import Document, ExtractOptions, Format, Metadata, PageType

_DEFAULTS: Final = ExtractOptions()
_DOUBTED_CHARSET: Final = "The declared character set does not fit the page; {} was assumed."
_CUT: Final = "The page is too large; only its first part was read."
_UNSURE: Final = "No main content was found with confidence; the likeliest part is returned."
_UNSURE_BELOW: Final = 0.25


def extract(
    body: bytes,
    content_type: str | None,
    url: str,
    options: ExtractOptions = _DEFAULTS,
) -> Document:
    """Make a Document of a body. Pure: the same bytes give the same Document.

    Raises VisitFailed for a file that cannot be read; HTML always gives a Document.
    """
    kind = kind_of(body, content_type, url)
    if kind in (Kind.HTML, Kind.EMPTY):
        return extract_html(decode(body, content_type), content_type, url, options)
    limits = Limits(pages=options.max_pages) if options.max_pages else Limits()
    document = read_document(body, content_type, url, kind=kind, limits=limits)
    if kind in TEXT_KINDS and options.formats & {Format.HTML, Format.RAW_HTML}:
        return _with_source(document, decode_text(body, content_type), options.formats)
    return document


def _with_source(document: Document, source: str, formats: frozenset[Format]) -> Document:
    """Return the text of a file as its HTML, as Firecrawl does: it has no other."""
    return structs.replace(
        document,
        html=source if Format.HTML in formats else None,
        raw_html=source if Format.RAW_HTML in formats else None,
    )


@without_gc
def extract_html(
    decoded: DecodedText,
    content_type: str | None,
    url: str,
    options: ExtractOptions = _DEFAULTS,
    scorer: Scorer | None = None,
) -> Document:
    """As `extract`, for text that is known to be HTML, and with a model of one's own."""
    tree = turbohtml.parse(decoded.text, positions=False, allow_declarative_shadow_roots=False)
    formats = options.formats
    # Its first search makes the parser's index of tags, which the following ones look into.
    head = read_head(tree)
    resolver = Resolver(tree, url)
    attribute_flags = scan_attributes(decoded.source)
    metadata = read_metadata(tree, resolver, head, attribute_flags)
    outline = read_outline(tree)
    links = (
        read_links(tree, resolver, outline, attribute_flags).on_page
        if Format.LINKS in formats
        else ()
    )
    images = read_images(tree, resolver) if Format.IMAGES in formats else ()
    structured = (
        read_structured(tree, url, head.nodes).as_json() if Format.STRUCTURED in formats else None
    )
    branding = read_branding(tree, resolver, metadata) if Format.BRANDING in formats else None
    content = _ContentReader(options, scorer or shipped_scorer(), attribute_flags).read(
        tree, outline, resolver, head
    )
    metadata = describe_text(metadata, content.text, content.words)
    doubt = _DOUBTED_CHARSET.format(decoded.encoding) if decoded.doubtful else None
    return Document(
        url=url,
        content_type=content_type,
        page_type=content.page_type,
        text=content.text,
        markdown=content.markdown,
        html=content.html,
        raw_html=decoded.text if Format.RAW_HTML in formats else None,
        metadata=metadata,
        links=links,
        images=images,
        language=metadata.language,
        structured=structured,
        branding=branding,
        summary=_summary(content.text, metadata) if Format.SUMMARY in formats else None,
        warning=_sentences(content.warning, doubt),
        charset=decoded.encoding,
    )


class Content(Struct, frozen=True):
    page_type: PageType
    text: str
    markdown: str
    html: str | None
    warning: str | None
    words: int | None = None
    """How many stand between white space in the text, if they were counted."""

    def with_more(self, text: str | None) -> "Content":
        """With a paragraph that the page does not show."""
        if text is None:
            return self
        paragraph = turbohtml.Element("p")
        paragraph.set_text(text)
        return Content(
            self.page_type,
            f"{self.text}\n{text}",
            self.markdown and f"{self.markdown}\n{paragraph.to_markdown().strip()}\n",
            self.html and f"{self.html}\n{paragraph.html}",
            _sentences(self.warning, NOTE),
        )


class _ContentReader(Struct, frozen=True):
    """Reads the content of pages, as asked for."""

    options: ExtractOptions
    scorer: Scorer
    attribute_flags: int
    """What `marks` has seen in the page's source."""

    def read(
        self,
        tree: turbohtml.Document,
        outline: Outline,
        resolver: Resolver,
        head: Head,
    ) -> Content:
        """The tree is pruned to what is returned."""
        for selector in self.options.exclude_tags:
            tree.remove(selector)
        if self.options.exclude_tags:
            outline, head = read_outline(tree), read_head(tree)
        said = read_hints(tree, resolver.page, head, self.attribute_flags)
        reading = self.scorer.features(outline, said)
        odds = self.scorer.odds(reading)
        chosen, words, surest = self._chosen(reading, tree, odds)
        text = chosen_text(chosen, reading.blocks)
        page_type = likeliest_type(odds)
        doubt = _UNSURE if surest < _UNSURE_BELOW else None
        cut = _CUT if outline.cut else None
        if not text or (requires_scripts(text) and _without_scripts(reading, chosen)):
            text, missing = fallback_text(tree)
            return Content(page_type, text, text, None, _sentences(missing, doubt, cut))
        # The parser's index of tags, which knows it, is gone with the first cut.
        body = tree.find("body") or tree.root
        left = prune(outline, reading.blocks, self._shown(chosen, reading))
        html, written = self._rendered(body, left, resolver)
        content = Content(page_type, text, written, html, _sentences(doubt, cut), words)
        if not self._takes_main_content():
            return content
        return content.with_more(structured_description(head.nodes, words, reading.blocks.texts))

    def _chosen(self, reading: Features, tree: turbohtml.Document, odds: list[float]) -> Choice:
        blocks = reading.blocks
        if self.options.include_tags:
            wanted = [element for tag in self.options.include_tags for element in tree.select(tag)]
            rows = np.array(find_rows(reading.outline.nodes, wanted), dtype=np.intp)
            return choice_of(reading.outline.enclosing(rows, blocks.first) > 0, blocks)
        if not self._takes_main_content() or not len(blocks):
            return choice_of(np.ones(len(blocks), dtype=np.bool_), blocks)
        judged = self.scorer.judge(reading, odds)
        return choose(judged.scores, blocks, judged.recall)

    def _takes_main_content(self) -> bool:
        return self.options.only_main_content and not self.options.include_tags

    def _shown(self, chosen: Flags, reading: Features) -> Flags:
        """What is rendered: a reader misses the headline, which the text need not repeat."""
        if self.options.include_tags:
            return chosen
        return with_headline(chosen, reading.blocks, reading.outline)

    def _rendered(
        self, body: turbohtml.Element | None, outline: Outline, resolver: Resolver
    ) -> tuple[str | None, str]:
        if body is None:
            return None, ""
        if outline.may_have("template"):
            open_templates(body)
        html = clean_html(body, resolver) if Format.HTML in self.options.formats else None
        if Format.MARKDOWN not in self.options.formats:
            return html, ""
        drop = self.options.remove_base64_images
        return html, renderer.render(
            body, LinkTargets(resolver), outline, self.attribute_flags, drop_data_images=drop
        )


def _without_scripts(reading: Features, chosen: Flags) -> bool:
    """Whether all that was chosen is shown only where scripts do not run."""
    spare = reading.outline.rows_of("noscript")
    return bool((reading.outline.enclosing(spare, reading.blocks.first[chosen]) > 0).all())


def _summary(text: str, metadata: Metadata) -> str:
    return summarise(text, title=metadata.title)


def _sentences(*warnings: str | None) -> str | None:
    return " ".join(filter(None, warnings)) or None
