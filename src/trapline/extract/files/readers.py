"""Which reader reads which kind of file."""

from collections.abc import Callable
from importlib import import_module

from trapline.extract.files.kinds import Kind
from trapline.extract.files.reader_result import (
    FileContent,
    Limits,
    UnreadableFile,
    UnsupportedFile,
)

Reader = Callable[[bytes, Limits], FileContent]
_READERS = {
    Kind.PDF: ("pdf", "read_pdf"),
    Kind.DOCX: ("docx", "read_docx"),
    Kind.XLSX: ("xlsx", "read_xlsx"),
    Kind.PPTX: ("pptx", "read_pptx"),
    Kind.ODT: ("opendocument", "read_opendocument"),
    Kind.ODS: ("opendocument", "read_opendocument"),
    Kind.ODP: ("opendocument", "read_opendocument"),
    Kind.EPUB: ("epub", "read_epub"),
    Kind.RTF: ("rtf", "read_rtf"),
    Kind.LEGACY: ("legacy", "read_legacy"),
}


def reader_for(kind: Kind) -> Reader:
    """The reader of a kind; its module, which may load a large library, is imported only now."""
    if kind not in _READERS:
        raise UnsupportedFile(f"there is no reader for {kind}")
    module, name = _READERS[kind]
    reader: Reader = getattr(import_module(f"trapline.extract.files.{module}"), name)
    return reader


def read(body: bytes, kind: Kind, limits: Limits) -> FileContent:
    """Read a file; whatever its bytes are, the only error is Unreadable."""
    try:
        return reader_for(kind)(body, limits)
    except UnreadableFile:
        raise
    except MemoryError as error:
        raise UnreadableFile("it needs more memory than the limit") from error
    except RecursionError as error:
        raise UnreadableFile("it is nested too deeply") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError) as error:
        # A reader trusts the structure of its format; a file that lacks it is damaged.
        raise UnreadableFile(f"the file is damaged: {type(error).__name__}") from error
