"""Capture of a page: its DOM as HTML, pictures of it, and PDFs."""

from typing import Final

import msgspec
from msgspec import Struct

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch.browser import commands as cdp
from trapline.fetch.browser.composed_tree import serialise
from trapline.fetch.browser.connection import ProtocolError
from trapline.fetch.browser.tab import Tab
from trapline.rendering import Pdf, Screenshot

# Custom elements may have closed shadow roots, which a script cannot see.
_DOM: Final = """(() => {
const all = document.getElementsByTagName('*');
const full = e => { try { return e.contentDocument.body.childNodes.length > 0 } catch { return false } };
let composed = false;
for (const e of all) {
  const name = e.localName;
  if (e.shadowRoot || (name.includes('-') && e.matches(':defined'))
      || ((name === 'iframe' || name === 'frame') && full(e))) { composed = true; break; }
}
const root = document.documentElement, type = document.doctype;
const html = root ? (type ? `<!DOCTYPE ${type.name}>` : '') + root.outerHTML : '';
const large = html.length > LIMIT;
return {composed, size: html.length, html: large ? '' : html, url: document.URL};
})()"""
_MAX_PIXELS: Final = 30_000
_SECONDS: Final = 20.0
_INCHES: Final = {
    "A0": (33.1, 46.8),
    "A1": (23.4, 33.1),
    "A2": (16.54, 23.4),
    "A3": (11.7, 16.54),
    "A4": (8.27, 11.7),
    "A5": (5.83, 8.27),
    "A6": (4.13, 5.83),
    "Letter": (8.5, 11.0),
    "Legal": (8.5, 14.0),
    "Tabloid": (11.0, 17.0),
    "Ledger": (17.0, 11.0),
}


class Dom(Struct, frozen=True):
    """The DOM of a page at one moment."""

    composed: bool
    size: int
    html: str
    url: str


async def capture_dom(tab: Tab, frame_id: str, limit: int, seconds: float) -> Dom:
    """Return the DOM of a page; VisitFailed if it is larger than the limit."""
    expression = _DOM.replace("LIMIT", str(limit))
    value = await tab.evaluate(expression, seconds=seconds, frame_id=frame_id)
    dom = msgspec.convert(value, Dom)
    if dom.size > limit:
        raise VisitFailed(ExitCode.DECOMPRESSED_TOO_LARGE, f"{dom.size:,} characters of DOM")
    return await _composed(tab, dom, seconds) if dom.composed else dom


async def _composed(tab: Tab, dom: Dom, seconds: float) -> Dom:
    """Return the DOM with shadow roots and frames; the plain one where it is nested too deeply."""
    try:
        document = await tab.session.call(cdp.GetDocument(depth=-1, pierce=True), seconds)
        return msgspec.structs.replace(dom, html=serialise(document.root))
    except (RecursionError, ProtocolError):
        return dom


async def take_screenshot(tab: Tab, options: Screenshot) -> tuple[bytes, str | None]:
    """Return a picture, and a warning where the page is too long for one."""
    clip, warning = None, None
    if options.full_page:
        size = (await tab.session.call(cdp.GetLayoutMetrics())).css_content_size
        height = min(size.height, _MAX_PIXELS)
        clip = cdp.Clip(0, 0, size.width, max(height, 1))
        if size.height > _MAX_PIXELS:
            warning = f"The screenshot ends at {_MAX_PIXELS:,} of {size.height:,.0f} pixels."
    picture = await tab.session.call(
        cdp.CaptureScreenshot(
            format="png" if options.quality is None else "jpeg",
            quality=options.quality,
            clip=clip,
            capture_beyond_viewport=options.full_page,
        ),
        _SECONDS,
    )
    return picture.data, warning


async def print_pdf(tab: Tab, options: Pdf) -> bytes:
    width, height = _INCHES[options.format]
    printed = await tab.session.call(
        cdp.PrintToPdf(
            landscape=options.landscape,
            scale=options.scale,
            paper_width=width,
            paper_height=height,
            print_background=True,
        ),
        _SECONDS,
    )
    return printed.data
