"""Runs of styled text, as word processors keep them, put together as inline Markdown."""

from dataclasses import dataclass

from trapline.extract.files.blocks import Block, BlockKind, escaped


@dataclass(frozen=True, slots=True)
class Style:
    """How a run looks and where it leads."""

    bold: bool = False
    italic: bool = False
    href: str = ""


PLAIN = Style()


class Runs:
    """Collects the runs of one paragraph; neighbours of one style become one run."""

    def __init__(self) -> None:
        self._runs: list[tuple[str, Style]] = []

    def add(self, text: str, style: Style = PLAIN) -> None:
        if not text:
            return
        if self._runs and self._runs[-1][1] == style:
            text = self._runs.pop()[0] + text
        self._runs.append((text, style))

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self._runs).strip()

    @property
    def markup(self) -> str:
        return "".join(_marked(text, style) for text, style in self._runs).strip()

    def block(self, kind: BlockKind, level: int = 0, *, ordered: bool = False) -> Block:
        return Block(kind, self.text, self.markup, level, ordered)


def _marked(text: str, style: Style) -> str:
    core = text.strip()
    if not core or style == PLAIN:
        return escaped(text)
    # Marks must touch the words they belong to, so white space stays outside them.
    before = text[: len(text) - len(text.lstrip())]
    after = text[len(text.rstrip()) :]
    marks = "**" * style.bold + "*" * style.italic
    inner = f"{marks}{escaped(core)}{marks}" if "\n" not in core else escaped(core)
    if style.href:
        target = style.href.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
        inner = f"[{inner}]({target})"
    return f"{before}{inner}{after}"
