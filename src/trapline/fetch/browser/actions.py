"""Actions on a page: wait, click, write, press, scroll, and what they return."""

import asyncio
import json
import time
from typing import Any, Final, assert_never

from trapline.fetch.browser import commands as cdp
from trapline.fetch.browser.capture import capture_dom, print_pdf, take_screenshot
from trapline.fetch.browser.connection import ProtocolError
from trapline.fetch.browser.page_load import PageLoad
from trapline.fetch.browser.tab import Tab
from trapline.rendering import (
    Action,
    ActionResults,
    ActionScrape,
    Click,
    ExecuteJavascript,
    JavascriptReturn,
    Pdf,
    Press,
    Scrape,
    Screenshot,
    Scroll,
    Wait,
    Write,
)

_POLL: Final = 0.1
_SELECTOR_SECONDS: Final = 30.0
_REST_SECONDS: Final = 3.0
_SCRIPT_SECONDS: Final = 30.0
_MAX_VALUE: Final = 10 * 2**20
_MAX_SCROLLS: Final = 50
_KEYS: Final = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "Backspace": (8, ""),
    "Delete": (46, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "Home": (36, ""),
    "End": (35, ""),
    "PageUp": (33, ""),
    "PageDown": (34, ""),
    "Space": (32, " "),
}
_LOCATE: Final = """(() => {
const e = document.querySelector(SELECTOR);
if (!e) return null;
e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
const r = e.getBoundingClientRect();
return {x: r.x + r.width / 2, y: r.y + r.height / 2, shown: r.width > 0 && r.height > 0};
})()"""
_CLICK_ALL: Final = """(() => {
const all = [...document.querySelectorAll(SELECTOR)];
for (const e of all) e.click();
return all.length;
})()"""
_CLICK: Final = "document.querySelector(SELECTOR).click()"
_SCROLL: Final = """(() => {
const e = SELECTOR === null ? document.scrollingElement : document.querySelector(SELECTOR);
if (!e) return false;
const step = SELECTOR === null ? innerHeight : e.clientHeight;
e.scrollBy({top: SIGN * step, behavior: 'instant'});
return true;
})()"""
_TO_END: Final = """(() => {
const e = document.scrollingElement || document.documentElement;
e.scrollBy({top: innerHeight, behavior: 'instant'});
return {top: e.scrollTop + innerHeight, height: e.scrollHeight};
})()"""
# The value is made text in the page: what cannot be, or is too large, does not leave it.
_EXECUTE: Final = """(async () => {
let value;
try { value = (0, eval)(SCRIPT); } catch (error) {
  if (!(error instanceof SyntaxError)) throw error;
  value = new (Object.getPrototypeOf(async () => {}).constructor)(SCRIPT)();
}
value = await value;
let text;
try { text = JSON.stringify(value); } catch { return {type: 'unknown'}; }
if (text === undefined) return {type: value === undefined ? 'undefined' : 'unknown'};
if (text.length > LIMIT) return {type: 'unknown', size: text.length};
return {type: typeof value, text};
})()"""


class ActionFailed(Exception):
    """An action could not be done; the message says which and why."""


class Actions:
    """Runs actions on a page and collects what they return, also if one fails."""

    def __init__(self, load: PageLoad, limit: int, deadline: float) -> None:
        self._load = load
        self._tab: Tab = load.tab
        self._limit = limit
        self._deadline = deadline
        self._screenshots: list[bytes] = []
        self._scrapes: list[ActionScrape] = []
        self._returns: list[JavascriptReturn] = []
        self._pdfs: list[bytes] = []
        self.warnings: list[str] = []

    @property
    def results(self) -> ActionResults:
        return ActionResults(
            tuple(self._screenshots),
            tuple(self._scrapes),
            tuple(self._returns),
            tuple(self._pdfs),
        )

    async def run(self, actions: tuple[Action, ...]) -> None:
        """Run actions in their order; ActionFailed names the first that fails."""
        for number, action in enumerate(actions, 1):
            name = f"Action {number} ({action.__struct_config__.tag})"
            try:
                async with asyncio.timeout(max(self._deadline - time.monotonic(), 0)):
                    await self._run(action)
            except TimeoutError:
                raise ActionFailed(f"{name}: the time of the page is over.") from None
            except (ProtocolError, ActionFailed) as error:
                raise ActionFailed(f"{name}: {error}") from error

    async def scroll_to_end(self) -> None:
        """Scroll step by step until the page grows no more."""
        before = 0.0
        for _ in range(_MAX_SCROLLS):
            place = await self._evaluate(_TO_END)
            await self._load.settle(_REST_SECONDS)
            if place["top"] >= place["height"] - 1 and place["height"] <= before:
                return
            before = place["height"]

    async def _run(self, action: Action) -> None:
        match action:
            case Wait():
                await self._wait(action)
            case Click():
                await self._click(action)
            case Write():
                await self._tab.session.call(cdp.InsertText(text=action.text))
            case Press():
                await self._press(action.key)
            case Scroll():
                await self._scroll(action)
            case Screenshot():
                await self._screenshot(action)
            case Scrape():
                dom = await capture_dom(self._tab, self._load.frame_id, self._limit, 10.0)
                self._scrapes.append(ActionScrape(dom.url, dom.html))
            case ExecuteJavascript():
                self._returns.append(await self._execute(action.script))
            case Pdf():
                self._pdfs.append(await print_pdf(self._tab, action))
            case _:
                assert_never(action)

    async def _wait(self, action: Wait) -> None:
        if action.milliseconds is not None:
            await asyncio.sleep(action.milliseconds / 1000)
            return
        latest = time.monotonic() + _SELECTOR_SECONDS
        expression = f"document.querySelector({json.dumps(action.selector)}) !== null"
        while not await self._evaluate(expression):
            if time.monotonic() > latest:
                raise ActionFailed(f"no element matches {action.selector!r}")
            await asyncio.sleep(_POLL)

    async def _click(self, action: Click) -> None:
        selector = json.dumps(action.selector)
        if action.all:
            if not await self._evaluate(_CLICK_ALL.replace("SELECTOR", selector)):
                raise ActionFailed(f"no element matches {action.selector!r}")
        else:
            place = await self._evaluate(_LOCATE.replace("SELECTOR", selector))
            if place is None:
                raise ActionFailed(f"no element matches {action.selector!r}")
            if place["shown"]:
                await self._mouse(place["x"], place["y"])
            else:
                await self._evaluate(_CLICK.replace("SELECTOR", selector))
        await self._load.settle(_REST_SECONDS)

    async def _mouse(self, x: float, y: float) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button, count = ("none", 0) if kind == "mouseMoved" else ("left", 1)
            await self._tab.session.call(
                cdp.MouseEvent(type=kind, x=x, y=y, button=button, click_count=count)
            )

    async def _press(self, key: str) -> None:
        code, text = _KEYS.get(key, (ord(key.upper()[0]), key if len(key) == 1 else ""))
        if key not in _KEYS and len(key) > 1:
            raise ActionFailed(f"{key!r} is not a key; use one of {', '.join(_KEYS)} or a letter")
        for kind in ("keyDown", "keyUp"):
            await self._tab.session.call(
                cdp.KeyEvent(
                    type=kind,
                    key=" " if key == "Space" else key,
                    code=key if key in _KEYS else "",
                    text=text if kind == "keyDown" else "",
                    windows_virtual_key_code=code,
                )
            )
        await self._load.settle(_REST_SECONDS)

    async def _scroll(self, action: Scroll) -> None:
        expression = _SCROLL.replace("SELECTOR", json.dumps(action.selector)).replace(
            "SIGN", "1" if action.direction == "down" else "-1"
        )
        if not await self._evaluate(expression):
            raise ActionFailed(f"no element matches {action.selector!r}")
        await self._load.settle(_REST_SECONDS)

    async def _screenshot(self, action: Screenshot) -> None:
        picture, warning = await take_screenshot(self._tab, action)
        self._screenshots.append(picture)
        if warning is not None:
            self.warnings.append(warning)

    async def _execute(self, script: str) -> JavascriptReturn:
        expression = _EXECUTE.replace("SCRIPT", json.dumps(script)).replace(
            "LIMIT", str(_MAX_VALUE)
        )
        done = await self._tab.evaluate(expression, seconds=_SCRIPT_SECONDS)
        if "size" in done:
            self.warnings.append(
                f"A script returned {done['size']:,} characters, which is too much."
            )
        text = done.get("text")
        return JavascriptReturn(done["type"], None if text is None else json.loads(text))

    async def _evaluate(self, expression: str) -> Any:
        return await self._tab.evaluate(expression, frame_id=self._load.frame_id)
