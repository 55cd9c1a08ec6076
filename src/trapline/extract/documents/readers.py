"""Which reader reads which kind of file."""

from collections.abc import Callable
from importlib import import_module

from trapline.extract.documents.kinds import Kind
from trapline.extract.documents.reading import Limits, Reading, Unreadable, Unsupported

Reader = Callable[[bytes, Limits], Reading]
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


def reader_of(kind: Kind) -> Reader:
    """The reader of a kind; its module, which may load a large library, is imported only now."""
    if kind not in _READERS:
        raise Unsupported(f"there is no reader for {kind}")
    module, name = _READERS[kind]
    reader: Reader = getattr(import_module(f"trapline.extract.documents.{module}"), name)
    return reader


def read(body: bytes, kind: Kind, limits: Limits) -> Reading:
    """Read a file; whatever its bytes are, the only error is Unreadable."""
    try:
        return reader_of(kind)(body, limits)
    except Unreadable:
        raise
    except MemoryError as error:
        raise Unreadable("it needs more memory than the limit") from error
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError) as error:
        # A reader trusts the structure of its format; a file that lacks it is damaged.
        raise Unreadable(f"the file is damaged: {type(error).__name__}") from error
