"""Reading safetensors: eight bytes of length, a JSON head, the numbers."""

import json
import struct
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trapline.errors import Unavailable

_TYPES: Final[dict[str, Any]] = {"F16": np.float16, "F32": np.float32, "I64": np.int64}
_LONGEST_HEAD: Final = 2**24


def tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Map the tensors of a file into memory, by name; types that we do not use are left out."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            head = json.loads(file.read(min(size, _LONGEST_HEAD)))
        return {
            name: np.memmap(
                path,
                _TYPES[about["dtype"]],
                "r",
                8 + size + about["data_offsets"][0],
                tuple(about["shape"]),
            )
            for name, about in head.items()
            if name != "__metadata__" and about["dtype"] in _TYPES
        }
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise Unavailable(f"{path.name} cannot be read as safetensors: {error}") from None
