"""Token counts, exact and offline."""

from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Final, Protocol, cast

ENCODING: Final = "cl100k_base"


class _Tokenizer(Protocol):
    def count(self, text: str) -> int: ...


def count_tokens(text: str) -> int:
    return _tokenizer().count(text)


@cache
def _tokenizer() -> _Tokenizer:
    """Load the package's native part alone: its Python part reads seven vocabularies on import."""
    package = find_spec("bpe_openai")
    folders = [] if package is None else package.submodule_search_locations or []
    for path in (found for folder in folders for found in Path(folder).glob("_bindings.*")):
        spec = spec_from_file_location("_bindings", path)
        if spec is not None and spec.loader is not None:
            native = module_from_spec(spec)
            spec.loader.exec_module(native)
            return cast("_Tokenizer", native.tokenizer_for_encoding(ENCODING))
    raise ImportError("bpe-openai has no native module")
