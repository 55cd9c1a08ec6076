"""RTF files: a small reader of control words, enough for text, headings and tables."""

import re
from dataclasses import dataclass, replace

from trapline.extract.files.blocks import Block, BlockKind, heading, paragraph, table
from trapline.extract.files.reader_result import FileContent, Limits, UnreadableFile
from trapline.extract.files.runs import Runs, Style

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n]+)"
)
_SILENT = {
    "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf", "listtable", "listoverridetable", "rsidtbl", "themedata", "datastore", "generator", "xmlnstbl", "latentstyles", "fldinst", "bkmkstart", "bkmkend", "annotation", "nonshppict", "mmathPr", "wgrffmtfilter",
}  # fmt: skip
_SIGNS = {
    "tab": "\t", "line": "\n", "emdash": "\u2014", "endash": "\u2013", "lquote": "\u2018", "rquote": "\u2019",
    "ldblquote": "\u201c", "rdblquote": "\u201d", "bullet": "•", "emspace": " ", "enspace": " ",
}  # fmt: skip
_PROPERTIES = {
    "title": "title",
    "author": "author",
    "subject": "subject",
    "keywords": "keywords",
    "doccomm": "description",
}
_MAX_DEPTH = 2_000


@dataclass(frozen=True, slots=True)
class _State:
    """What a group inherits from the one around it."""

    silent: bool = False
    fact: str = ""
    bold: bool = False
    italic: bool = False
    skip: int = 1


def read_rtf(body: bytes, limits: Limits) -> FileContent:
    if not body.lstrip().startswith(b"{\\rtf"):
        raise UnreadableFile("it does not begin as RTF does")
    reader = _Rtf()
    for match in _TOKEN.finditer(body):
        reader.take(match)
        if reader.characters > limits.characters:
            return reader.content("The text is longer than the limit; the rest was left out.")
    return reader.content(None)


class _Rtf:
    def __init__(self) -> None:
        self._states = [_State()]
        self._blocks: list[Block] = []
        self._runs = Runs()
        self._rows: list[list[str]] = []
        self._cells: list[str] = []
        self._outline = -1
        self._codec = "cp1252"
        self._to_skip = 0
        self._is_item = False
        self._properties: dict[str, str] = {}
        self.characters = 0

    def take(self, match: re.Match[bytes]) -> None:
        word, number, code, sign, brace, text = match.groups()
        if brace:
            self._group(opening=brace == b"{")
        elif word:
            self._word(word.decode("ascii"), int(number) if number else None)
        elif code:
            self._add(bytes([int(code, 16)]).decode(self._codec, "replace"))
        elif sign:
            self._sign(sign)
        elif text:
            self._add(text.decode(self._codec, "replace"))

    def content(self, warning: str | None) -> FileContent:
        self._end_paragraph()
        self._end_table()
        return FileContent(
            self._blocks,
            {n: " ".join(t.split()) for n, t in self._properties.items()},
            warning=warning,
        )

    def _group(self, *, opening: bool) -> None:
        if opening:
            if len(self._states) > _MAX_DEPTH:
                raise UnreadableFile("its groups are nested too deeply")
            self._states.append(self._states[-1])
        elif len(self._states) > 1:
            self._states.pop()

    def _set(self, **changes: object) -> None:
        self._states[-1] = replace(self._states[-1], **changes)  # type: ignore[arg-type]

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            # What a reader need not know is left out.
            self._set(silent=True)
        elif sign in (b"\\", b"{", b"}"):
            self._add(sign.decode())
        elif sign == b"~":
            self._add("\u00a0")
        elif sign in (b"\n", b"\r"):
            self._end_paragraph()

    def _word(self, word: str, number: int | None) -> None:
        if word in _PROPERTIES:
            self._set(silent=False, fact=_PROPERTIES[word])
        elif word in _SILENT:
            self._set(silent=True)
        elif word in _SIGNS:
            self._add(_SIGNS[word])
        elif word in ("b", "i"):
            self._set(**{"bold" if word == "b" else "italic": number != 0})
        elif word == "u" and number is not None:
            self._add(chr(number % 65536) if not 0xD800 <= number % 65536 < 0xE000 else "\ufffd")  # noqa: PLR2004 - surrogates
            self._to_skip = self._states[-1].skip
        elif word == "uc":
            self._set(skip=min(number or 0, 10))
        elif word == "ansicpg" and number:
            self._codec = _codec(number)
        elif word in ("listtext", "pntext"):
            self._is_item = True
            self._set(silent=True)
        else:
            self._layout(word, number)

    def _layout(self, word: str, number: int | None) -> None:
        if word in ("par", "sect", "page"):
            self._end_paragraph()
        elif word == "cell":
            self._cells.append(self._runs.text)
            self._runs = Runs()
        elif word == "row":
            self._rows.append(self._cells)
            self._cells = []
        elif word == "pard":
            self._outline = -1
        elif word == "plain":
            self._set(bold=False, italic=False)
        elif word == "outlinelevel":
            self._outline = number or 0

    def _add(self, text: str) -> None:
        state = self._states[-1]
        if self._to_skip:
            # The fallback for readers without Unicode follows each character.
            dropped = min(self._to_skip, len(text))
            self._to_skip -= dropped
            text = text[dropped:]
        if state.fact:
            self._properties[state.fact] = self._properties.get(state.fact, "") + text
        elif not state.silent:
            self._runs.add(text, Style(state.bold, state.italic))
            self.characters += len(text)

    def _end_paragraph(self) -> None:
        runs, self._runs = self._runs, Runs()
        is_item, self._is_item = self._is_item, False
        if not runs.text or self._cells:
            return
        self._end_table()
        if 0 <= self._outline < 9:  # noqa: PLR2004 - outline levels
            self._blocks.append(heading(runs.text, self._outline + 1))
        elif is_item:
            self._blocks.append(runs.block(BlockKind.ITEM))
        else:
            self._blocks.append(paragraph(runs.text, runs.markup))

    def _end_table(self) -> None:
        if self._rows:
            self._blocks.append(table(self._rows))
            self._rows = []


def _codec(page: int) -> str:
    name = f"cp{page}"
    try:
        b"".decode(name)
    except LookupError:
        return "cp1252"
    return name
