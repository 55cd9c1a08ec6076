"""A page as the model reads it: blocks with all that is known of them, before any is chosen."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from msgspec import Struct

from trapline import native
from trapline.extract.html.outline import Floats, Ints, Outline, ints
from trapline.extract.main_content.blocks import Blocks, read_blocks
from trapline.extract.main_content.features import (
    STOPS,
    Columns,
    Layout,
    Totals,
    block_columns,
    page_vector,
    read_layout,
    text_counts,
)
from trapline.extract.main_content.vocabulary import (
    SHORT,
    Names,
    Sections,
    Vocabulary,
    name_columns,
    prose_words,
    read_names,
    read_sections,
    summary,
    text_columns,
)
from trapline.extract.metadata.page_type_hints import PageHints


class Features(Struct, frozen=True):
    """The model's input."""

    outline: Outline
    blocks: Blocks
    matrix: Floats
    """A row a block; the numbers about the whole page are apart, in `page`."""
    page: Floats
    keys: Ints
    """A row for each way in which blocks belong together: keys that agree within a group."""


@dataclass(frozen=True, slots=True)
class PageReading:
    outline: Outline
    blocks: Blocks
    layout: Layout
    names: Names
    sections: Sections
    columns: Columns
    page_names: list[str]
    page: Floats

    def features(self, vocabulary: Vocabulary) -> Features:
        keys = np.array(self.group_keys(), dtype=np.intp)
        return Features(self.outline, self.blocks, self.matrix(vocabulary), self.page, keys)

    def matrix(self, vocabulary: Vocabulary) -> Floats:
        """One row of features a block; those of the whole page are apart, in `page`."""
        columns = {**self.columns, **self.word_columns(vocabulary)}
        matrix = np.empty((len(columns), len(self.blocks)), dtype=np.float32)
        np.concatenate(list(columns.values()), out=matrix.reshape(-1), casting="unsafe")
        return matrix.T

    def word_columns(self, vocabulary: Vocabulary) -> Columns:
        return {
            **name_columns(
                self.layout, self.names, vocabulary.names.summaries(self.names.distinct)
            ),
            **text_columns(
                self._short_summaries(vocabulary),
                vocabulary.headings.summaries(self.sections.headings),
                self._prose_summaries(vocabulary),
                self.sections,
            ),
        }

    def _short_summaries(self, vocabulary: Vocabulary) -> Floats:
        """Scores of the words of short blocks; long ones speak for themselves."""
        short = np.flatnonzero(self.blocks.words <= SHORT)
        scores = np.zeros((len(self.blocks), 3), dtype=np.float32)
        texts = list(map(self.blocks.texts.__getitem__, short.tolist()))
        scores[short] = vocabulary.texts.summaries(texts)
        return scores

    def _prose_summaries(self, vocabulary: Vocabulary) -> Floats:
        """Scores of the first words of long blocks."""
        scores = np.zeros((len(self.blocks), 3), dtype=np.float32)
        long = np.flatnonzero(self.blocks.words > SHORT).tolist()
        texts = map(self.blocks.texts.__getitem__, long)
        rows = [summary(vocabulary.prose, prose_words(text)) for text in texts]
        scores[long] = np.array(rows, dtype=np.float32).reshape(-1, 3)
        return scores

    def group_keys(self) -> tuple[Ints, ...]:
        """Which blocks belong together, in several ways: keys that agree within a group."""
        layout, parent = self.layout, self.outline.parent
        alike = layout.signature[layout.level[0]] * 31 + layout.signature[layout.level[1]]
        return (
            alike,
            parent[layout.records],
            layout.records,
            layout.level[2],
            self.sections.of_block,
            self.sections.above[self.sections.of_block],
        )


def read_page(outline: Outline, said: PageHints) -> PageReading:
    blocks = read_blocks(outline)
    names = read_names(outline)
    layout = read_layout(outline, blocks, names.classes)
    counts = text_counts(blocks.texts)
    totals = Totals(layout, counts[:, STOPS])
    columns = block_columns(layout, totals, counts, said.echo)
    page_names, page = page_vector(layout, totals, columns, np.array(said.hints, dtype=np.float32))
    return PageReading(
        outline, blocks, layout, names, read_sections(layout), columns, page_names, page
    )


_GROUPINGS: Final = 6


def read_features(
    outline: Outline, said: PageHints, vocabulary: Vocabulary, width: int
) -> Features:
    """`width` is how many columns the model expects of each block."""
    features = read_page(outline, said).features(vocabulary)
    if features.matrix.shape[1] != width:
        raise ValueError("The model expects other features: train it again.")
    return features


def compiled_features(
    outline: Outline, said: PageHints, vocabulary: Vocabulary, width: int
) -> Features:
    blocks = read_blocks(outline)
    matrix, page, keys = native.library.reading(
        outline.nodes, outline.code, outline.parent, outline.last, blocks.texts,
        blocks.words, blocks.owner, blocks.first,
        blocks.piece_row, blocks.piece_block, blocks.piece_size,
        *said, _lexicons(vocabulary), width,
    )  # fmt: skip
    return Features(
        outline,
        blocks,
        np.frombuffer(matrix, np.float32).reshape(-1, width),
        np.frombuffer(page, np.float32),
        ints(keys).reshape(_GROUPINGS, -1),
    )


@lru_cache(maxsize=8)
def _lexicons(vocabulary: Vocabulary) -> tuple[object, ...]:
    return tuple(map(native.library.lexicon, vocabulary.scores))


if native.available:
    read_features = compiled_features
