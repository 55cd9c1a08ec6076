"""Formulas: TeX between dollar signs, from MathML annotations, MathJax scripts and KaTeX."""

from typing import Final

import turbohtml

FORMULA: Final = "math"
_COPIES: Final = ".katex-html,.MathJax_Preview,.MJX_Assistive_MathML,mjx-assistive-mml"
_TEX: Final = 'annotation[encoding="application/x-tex"],annotation[encoding="TeX"]'


def mark_formulas(body: turbohtml.Element) -> None:
    """Drop what repeats a formula for the eye."""
    if body.find(FORMULA) is not None:
        for copy in body.select(_COPIES):
            copy.decompose()


def write_formula(element: turbohtml.Element, rendered: str) -> str:
    """A formula as TeX; one without TeX as its plain text."""
    annotation = element.select_one(_TEX)
    tex = annotation.text if annotation else element.attr("alttext")
    if not tex:
        return " ".join(rendered.split())
    tex = " ".join(tex.split())
    if tex.startswith("{\\displaystyle") and tex.endswith("}"):
        tex = tex[len("{\\displaystyle") : -1].strip()
    fence = "$$" if element.attr("display") == "block" else "$"
    return f"{fence}{tex}{fence}"
