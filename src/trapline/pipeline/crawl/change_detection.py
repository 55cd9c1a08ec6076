"""Change detection: compares a document with the previous version, without the site's noise."""

from trapline.extract.diff import Diff, diff
from trapline.extract.version import EXTRACTOR_VERSION
from trapline.frontier.patterns import Patterns
from trapline.model import Document
from trapline.pipeline.sql.page_lookup import PreviousVersionRow
from trapline.store.changes import Extent
from trapline.store.content_hash import content_hash
from trapline.store.pages import Comparison


def compare_versions(
    version_id: int,
    previous: PreviousVersionRow,
    document: Document,
    sha256: bytes,
    noise: Patterns,
) -> Comparison:
    """Compare a document with the previous version, which has another hash."""
    if previous.sha256 == sha256 and previous.extractor_version != EXTRACTOR_VERSION:
        # The bytes are the same: only the extractor changed.
        return Comparison(version_id, same=True)
    if noise:
        old, new = without_noise(previous.text, noise), without_noise(document.text, noise)
        if content_hash(old) == content_hash(new):
            return Comparison(version_id, same=True)
    return Comparison(
        version_id,
        same=False,
        extent=extent(diff_without_noise(previous.markdown, document.markdown, noise)),
    )


def diff_without_noise(old: str, new: str, noise: Patterns) -> Diff:
    """Return the diff of two markdown texts without their noise."""
    return diff(without_noise(old, noise), without_noise(new, noise))


def without_noise(text: str, noise: Patterns) -> str:
    """Leave out the lines that match a pattern."""
    if not noise:
        return text
    return "\n".join(line for line in text.splitlines() if not noise.found_in(line))


def extent(of: Diff) -> Extent:
    return Extent(of.added_lines, of.removed_lines, of.added_words, of.removed_words)


def summary(of: Extent | None) -> str:
    """Describe the extent of a change in a sentence."""
    if of is None:
        return ""
    if not of.added_lines and not of.removed_lines:
        return "Nothing changed."
    added = f"{of.added_lines} {'line' if of.added_lines == 1 else 'lines'} added"
    return f"{added}, {of.removed_lines} removed."
