"""Directories of the repository that tests read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "trapline"
DOCS = ROOT / "docs"
# One page of each type with its main content, for the tests of the extractor.
PAGES = ROOT / "tests" / "unit" / "extract" / "pages"
