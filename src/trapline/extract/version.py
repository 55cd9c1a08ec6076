"""The version of the extractor, stored with what it made."""

from typing import Final

# Raise it whenever the same bytes may give another text: a new version alone is not a change.
EXTRACTOR_VERSION: Final = 2
