"""Reads and cuts pages with the compiled reader, or in Python where there is none."""

import turbohtml

from trapline.extract import compiled, pruning, selection
from trapline.extract.blocks import Blocks
from trapline.extract.outline import Flags, Floats, Outline
from trapline.extract.outline import read_outline as read_outline_in_python
from trapline.extract.selection import Choice


def read_outline(tree: turbohtml.Document) -> Outline:
    return compiled.read_outline(tree) if compiled.AVAILABLE else read_outline_in_python(tree)


def choose(scores: Floats, blocks: Blocks, recall: float) -> Choice:
    if compiled.AVAILABLE:
        return compiled.choose(scores, blocks, recall)
    return selection.choose(scores, blocks, recall)


def with_headline(chosen: Flags, blocks: Blocks, outline: Outline) -> Flags:
    if compiled.AVAILABLE:
        return compiled.with_headline(chosen, blocks, outline)
    return selection.with_headline(chosen, blocks, outline)


def prune(outline: Outline, blocks: Blocks, chosen: Flags) -> Outline:
    if compiled.AVAILABLE:
        return compiled.prune(outline, blocks, chosen)
    return pruning.prune(outline, blocks, chosen)
