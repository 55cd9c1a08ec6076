"""Reads trees into arrays, with the compiled reader where there is one."""

import turbohtml

from trapline.extract import compiled, outline


def read_outline(tree: turbohtml.Document) -> outline.Outline:
    return compiled.read_outline(tree) if compiled.AVAILABLE else outline.read_outline(tree)
