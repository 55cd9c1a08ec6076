"""What a reader makes of a file, and the limits that every reader keeps to."""

from dataclasses import dataclass, field

from trapline.extract.files.blocks import Block


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one file may cost, whatever is in it."""

    pages: int = 10_000
    unpacked_bytes: int = 200_000_000
    characters: int = 20_000_000
    seconds: float = 60.0
    memory_bytes: int = 1_500_000_000


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file in reading order, and what it says about itself.

    `properties` has the names of Metadata's fields (title, author, …); others are kept as declared.
    """

    blocks: list[Block]
    properties: dict[str, str] = field(default_factory=dict)
    pages: int | None = None
    warning: str | None = None


class UnreadableFile(Exception):
    """The file cannot be read; the message says why, for people."""


class FileTooLarge(UnreadableFile):
    """The file unpacks to more than the limit."""


class UnsupportedFile(UnreadableFile):
    """The file is of a type that has no text."""
