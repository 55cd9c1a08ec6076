"""What changed between the version before and what was found, with a site's noise left out."""

from trapline.extract.diff import Diff, diff
from trapline.extract.version import EXTRACTOR_VERSION
from trapline.frontier.patterns import Patterns
from trapline.model import Document
from trapline.pipeline.sql.known import PreviousVersionRow
from trapline.store.changes import Extent
from trapline.store.identity import content_hash
from trapline.store.pages import Comparison


def compared(
    version_id: int,
    previous: PreviousVersionRow,
    document: Document,
    sha256: bytes,
    noise: Patterns,
) -> Comparison:
    """Compare a document with the version before, whose hash is another."""
    if previous.sha256 == sha256 and previous.extractor_version != EXTRACTOR_VERSION:
        # The same bytes: it is the extractor that changed.
        return Comparison(version_id, same=True)
    if noise:
        old, new = quiet(previous.text, noise), quiet(document.text, noise)
        if content_hash(old) == content_hash(new):
            return Comparison(version_id, same=True)
    return Comparison(
        version_id,
        same=False,
        extent=extent(difference(previous.markdown, document.markdown, noise)),
    )


def difference(old: str, new: str, noise: Patterns) -> Diff:
    """Return the diff of two markdown texts without the lines that are noise."""
    return diff(quiet(old, noise), quiet(new, noise))


def quiet(text: str, noise: Patterns) -> str:
    """Leave out the lines in which a pattern occurs."""
    if not noise:
        return text
    return "\n".join(line for line in text.splitlines() if not noise.found_in(line))


def extent(found: Diff) -> Extent:
    return Extent(found.added_lines, found.removed_lines, found.added_words, found.removed_words)


def summary(of: Extent | None) -> str:
    """Say how much changed in a sentence."""
    if of is None:
        return ""
    if not of.added_lines and not of.removed_lines:
        return "Nothing changed."
    added = f"{of.added_lines} {'line' if of.added_lines == 1 else 'lines'} added"
    return f"{added}, {of.removed_lines} removed."
