"""Pages as the training sees them: features without vocabulary, words to score, labels."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import turbohtml
from msgspec import structs

from benchmarks.extractor.labels import label_blocks
from benchmarks.extractor.scoring import word_f1, words_of
from benchmarks.extractor.wcxb import WcxbPage
from trapline.extract.html.charset import decode
from trapline.extract.html.outline import Flags, Floats, read_outline
from trapline.extract.main_content.blocks import Blocks
from trapline.extract.main_content.features import Layout
from trapline.extract.main_content.model_input import PageReading, read_page
from trapline.extract.main_content.scorer import Group
from trapline.extract.main_content.vocabulary import (
    SHORT,
    Names,
    name_words,
    prose_words,
    text_words,
)
from trapline.extract.metadata.page_type_hints import read_hints


@dataclass(frozen=True)
class Sample:
    page: WcxbPage
    fold: int
    reading: PageReading
    labels: npt.NDArray[np.float64]
    own: Floats
    words: tuple[list[list[str]], list[list[str]], list[list[str]], list[list[str]]]
    """Of the distinct names, of the short blocks, of the headings, of the long blocks."""
    groups: tuple[Group, ...]
    block_words: list[list[str]]
    truth_words: list[str]

    @property
    def blocks(self) -> Blocks:
        return self.reading.blocks

    @property
    def layout(self) -> Layout:
        return self.reading.layout

    @property
    def names(self) -> Names:
        return self.reading.names

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Blocks count by their words, the long ones less than in proportion."""
        return np.asarray(self.blocks.words**0.7)

    def f1(self, chosen: Flags) -> float:
        found = [word for number in np.flatnonzero(chosen) for word in self.block_words[number]]
        return word_f1(found, self.truth_words)


def read_sample(page: WcxbPage, fold: int) -> Sample:
    text = decode(page.body, None).text
    tree = turbohtml.parse(text, positions=False, allow_declarative_shadow_roots=False)
    reading = read_page(read_outline(tree), read_hints(tree, page.url))
    blocks = reading.blocks
    short = [
        text_words(text) if count <= SHORT else []
        for text, count in zip(blocks.texts, blocks.words, strict=True)
    ]
    return Sample(
        page=page,
        fold=fold,
        reading=_without_tree(reading),
        labels=label_blocks(blocks.texts, page.truth),
        own=np.array(list(reading.columns.values()), dtype=np.float32).T,
        words=(
            [name_words(names) for names in reading.names.distinct],
            short,
            [text_words(heading) for heading in reading.sections.headings],
            [
                prose_words(text) if count > SHORT else []
                for text, count in zip(blocks.texts, blocks.words, strict=True)
            ],
        ),
        groups=tuple(map(Group.of, reading.group_keys())),
        block_words=[words_of(text) for text in blocks.texts],
        truth_words=words_of(page.truth),
    )


def _without_tree(reading: PageReading) -> PageReading:
    """Keep the arrays and let the parsed page go."""
    outline = structs.replace(reading.outline, nodes=[])
    layout = replace(reading.layout, outline=outline)
    return replace(reading, outline=outline, layout=layout)
