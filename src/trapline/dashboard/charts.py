"""Charts as SVG, drawn on the server: stacked columns over time, and a waterfall of requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

_WIDTH: Final = 720
_HEIGHT: Final = 120


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a label for its tooltip, and amounts by the name of a series, from below."""

    label: str
    amounts: Sequence[tuple[str, float]]

    @property
    def total(self) -> float:
        return sum(amount for _, amount in self.amounts)


def columns(data: Sequence[Column], *, title: str) -> Markup:
    """Return stacked columns, scaled to the highest one."""
    highest = max((column.total for column in data), default=0) or 1
    width = _WIDTH / max(len(data), 1)
    bars = Markup("").join(
        _column(column, index * width, width, highest) for index, column in enumerate(data)
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">{}</svg>'
    ).format(_WIDTH, _HEIGHT, title, bars)


def _column(column: Column, x: float, width: float, highest: float) -> Markup:
    parts, bottom = [], float(_HEIGHT)
    for series, amount in column.amounts:
        height = amount / highest * (_HEIGHT - 4)
        if height <= 0:
            continue
        bottom -= height
        parts.append(
            Markup(
                '<rect class="s-{}" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"/>'
            ).format(series, x + width * 0.1, bottom, width * 0.8, height)
        )
    spoken = ", ".join(f"{amount:,.0f} {series}" for series, amount in column.amounts)
    hit = Markup('<rect class="hit" x="{:.2f}" y="0" width="{:.2f}" height="{}"/>').format(
        x, width, _HEIGHT
    )
    return Markup("<g><title>{}: {}</title>{}{}</g>").format(
        column.label, spoken, hit, Markup("").join(parts)
    )


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a request: its name, when it began and how long it took, in milliseconds."""

    name: str
    start: float
    length: float


def waterfall(phases: Sequence[Phase], total: float) -> Markup:
    """Return one row of a waterfall, scaled to the length of the whole."""
    scale = 1000 / max(total, 0.001)
    bars = Markup("").join(
        Markup(
            '<rect class="p-{}" x="{:.2f}" y="2" width="{:.2f}" height="12"><title>{}: {:.1f} ms</title></rect>'
        ).format(p.name, p.start * scale, max(p.length * scale, 1.5), p.name, p.length)
        for p in phases
    )
    spoken = ", ".join(f"{p.name} {p.length:.1f} ms" for p in phases) or "no timings"
    return Markup(
        '<svg class="waterfall" viewBox="0 0 1000 16" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(spoken, bars)
