"""Writing ONNX: the few messages of its protobuf that a graph of known shape needs.

The package onnx would do the same, and is larger than all that we install for a sentence model
beside onnxruntime itself. Field numbers are those of onnx.proto3.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Attribute = int | float | Sequence[int]

_IR_VERSION: Final = 9
OPSET: Final = 20
_VARINT, _BYTES, _FIXED32 = 0, 2, 5
_ELEMENTS: Final[Mapping[str, int]] = {"float32": 1, "int64": 7}
_FLOAT, _INT, _INTS = 1, 2, 7
_MORE: Final = 0x80


class Graph:
    """Nodes, constants, inputs and outputs, in the order in which they are added."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._count = 0

    def constant(self, name: str, value: NDArray[Any]) -> str:
        kept = np.ascontiguousarray(value)
        self._constants.append(
            b"".join(_number(1, size) for size in kept.shape)
            + _number(2, _ELEMENTS[kept.dtype.name])
            + _text(8, name)
            + _field(9, kept.tobytes())
        )
        return name

    def input(self, name: str, element: str, shape: Sequence[str | int]) -> str:
        self._inputs.append(_value(name, element, shape))
        return name

    def output(self, name: str, element: str, shape: Sequence[str | int]) -> None:
        self._outputs.append(_value(name, element, shape))

    def node(self, operation: str, *inputs: str, out: str = "", **attributes: Attribute) -> str:
        """Add an operation; return the name of its result."""
        return self.nodes(operation, inputs, [out] if out else 1, **attributes)[0]

    def nodes(
        self,
        operation: str,
        inputs: Iterable[str],
        results: Sequence[str] | int,
        **attributes: Attribute,
    ) -> list[str]:
        """Add an operation with several results, named by us if need be."""
        self._count += 1
        names = (
            [f"{operation}_{self._count}_{at}" for at in range(results)]
            if isinstance(results, int)
            else list(results)
        )
        self._nodes.append(
            b"".join(_text(1, name) for name in inputs)
            + b"".join(_text(2, name) for name in names)
            + _text(3, f"{operation}_{self._count}")
            + _text(4, operation)
            + b"".join(_field(5, _attribute(name, v)) for name, v in attributes.items())
        )
        return names

    def encoded(self) -> bytes:
        """Return the bytes of a model file."""
        graph = b"".join(
            (
                b"".join(_field(1, node) for node in self._nodes),
                _text(2, self._name),
                b"".join(_field(5, constant) for constant in self._constants),
                b"".join(_field(11, value) for value in self._inputs),
                b"".join(_field(12, value) for value in self._outputs),
            )
        )
        opset = _text(1, "") + _number(2, OPSET)
        return _number(1, _IR_VERSION) + _text(2, "trapline") + _field(7, graph) + _field(8, opset)


def _attribute(name: str, value: Attribute) -> bytes:
    head = _text(1, name)
    if isinstance(value, float):
        return head + _key(2, _FIXED32) + struct.pack("<f", value) + _number(20, _FLOAT)
    if isinstance(value, int):
        return head + _number(3, value) + _number(20, _INT)
    return head + b"".join(_number(8, one) for one in value) + _number(20, _INTS)


def _value(name: str, element: str, shape: Sequence[str | int]) -> bytes:
    sizes = b"".join(
        _field(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape
    )
    tensor = _number(1, _ELEMENTS[element]) + _field(2, sizes)
    return _text(1, name) + _field(2, _field(1, tensor))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _varint(value & (2**64 - 1))


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= _MORE:
        found.append(value & (_MORE - 1) | _MORE)
        value >>= 7
    found.append(value)
    return bytes(found)
