"""A BERT encoder with the mean of its last layer, as an ONNX graph made from its weights.

Made once, when a model is installed; what runs it is onnxruntime alone. Attention's scale goes into
the weights of the query, and the token type, which is always the first, into the positions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.embedding.onnx_file import Graph

Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """What the weights alone do not say."""

    layers: int
    heads: int
    epsilon: float = 1e-12


def encoder_graph(weights: Weights, shape: EncoderShape) -> bytes:
    """Return the file of a graph from token ids and mask to one row for each text."""
    return _Encoder(weights, shape).built()


class _Encoder:
    def __init__(self, weights: Weights, shape: EncoderShape) -> None:
        self._w = {name: np.asarray(value, np.float32) for name, value in weights.items()}
        self._shape = shape
        self._width = self._w["embeddings.word_embeddings.weight"].shape[1]
        self._graph = Graph("sentence encoder")

    def built(self) -> bytes:
        graph = self._graph
        ids = graph.input("input_ids", "int64", ("batch", "tokens"))
        mask = graph.input("attention_mask", "int64", ("batch", "tokens"))
        seen = graph.node("Cast", mask, to=1)
        axes = graph.constant("inner axes", np.array([1, 2], np.int64))
        hidden = graph.node("Sub", graph.constant("one", np.array([1], np.float32)), seen)
        far = graph.node("Mul", hidden, graph.constant("far", np.array([-1e9], np.float32)))
        bias = graph.node("Unsqueeze", far, axes)
        state = self._embedded(ids)
        for number in range(self._shape.layers):
            state = self._layer(state, bias, number)
        self._mean(state, seen)
        graph.output("sentence_embedding", "float32", ("batch", self._width))
        return graph.encoded()

    def _embedded(self, ids: str) -> str:
        graph, w = self._graph, self._w
        words = graph.node(
            "Gather", graph.constant("words", w["embeddings.word_embeddings.weight"]), ids
        )
        places = w["embeddings.position_embeddings.weight"]
        kinds = w["embeddings.token_type_embeddings.weight"]
        table = graph.constant("places", places + kinds[0])
        length = graph.node(
            "Gather",
            graph.node("Shape", ids),
            graph.constant("second", np.array([1], np.int64)),
        )
        zero = graph.constant("zero", np.array([0], np.int64))
        at = graph.node("Slice", table, zero, length, zero)
        return self._norm(graph.node("Add", words, at), "embeddings.LayerNorm")

    def _layer(self, state: str, bias: str, number: int) -> str:
        name = f"encoder.layer.{number}"
        told = self._linear(self._attended(state, bias, name), f"{name}.attention.output.dense")
        state = self._norm(
            self._graph.node("Add", state, told), f"{name}.attention.output.LayerNorm"
        )
        wide = self._graph.node("Gelu", self._linear(state, f"{name}.intermediate.dense"))
        told = self._linear(wide, f"{name}.output.dense")
        return self._norm(self._graph.node("Add", state, told), f"{name}.output.LayerNorm")

    def _attended(self, state: str, bias: str, name: str) -> str:
        graph = self._graph
        query, key, value = self._queries(state, f"{name}.attention.self")
        scores = graph.node("Add", graph.node("MatMul", query, key), bias)
        weighed = graph.node("Softmax", scores, axis=-1)
        mixed = graph.node("MatMul", weighed, value)
        joined = graph.node("Transpose", mixed, perm=(0, 2, 1, 3))
        whole = graph.constant(f"{name} whole", np.array([0, 0, self._width], np.int64))
        return graph.node("Reshape", joined, whole)

    def _queries(self, state: str, name: str) -> list[str]:
        """One multiplication for queries, keys and values together, then cut apart by head."""
        graph, w, heads = self._graph, self._w, self._shape.heads
        each = self._width // heads
        scale = np.float32(1 / np.sqrt(each))
        parts = ("query", "key", "value")
        scales = (scale, np.float32(1), np.float32(1))
        matrix = np.concatenate(
            [w[f"{name}.{part}.weight"].T * by for part, by in zip(parts, scales, strict=True)], 1
        )
        offset = np.concatenate(
            [w[f"{name}.{part}.bias"] * by for part, by in zip(parts, scales, strict=True)]
        )
        all_three = self._times(state, matrix, offset, name)
        sizes = graph.constant(f"{name} sizes", np.array([self._width] * 3, np.int64))
        split = graph.nodes("Split", (all_three, sizes), 3, axis=-1)
        by_head = graph.constant(f"{name} heads", np.array([0, 0, heads, each], np.int64))
        turns = ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
        return [
            graph.node("Transpose", graph.node("Reshape", one, by_head), perm=turn)
            for one, turn in zip(split, turns, strict=True)
        ]

    def _mean(self, state: str, seen: str) -> None:
        graph = self._graph
        last = graph.constant("last axis", np.array([2], np.int64))
        rows = graph.constant("token axis", np.array([1], np.int64))
        kept = graph.node("Mul", state, graph.node("Unsqueeze", seen, last))
        total = graph.node("ReduceSum", kept, rows, keepdims=0)
        count = graph.node("ReduceSum", seen, rows, keepdims=1)
        graph.node("Div", total, count, out="sentence_embedding")

    def _linear(self, state: str, name: str) -> str:
        w = self._w
        return self._times(state, w[f"{name}.weight"].T, w[f"{name}.bias"], name)

    def _times(
        self, state: str, matrix: NDArray[np.float32], offset: NDArray[np.float32], name: str
    ) -> str:
        graph = self._graph
        product = graph.node("MatMul", state, graph.constant(f"{name}.weight", matrix))
        return graph.node("Add", product, graph.constant(f"{name}.bias", offset))

    def _norm(self, state: str, name: str) -> str:
        graph, w = self._graph, self._w
        return graph.node(
            "LayerNormalization",
            state,
            graph.constant(f"{name}.weight", w[f"{name}.weight"]),
            graph.constant(f"{name}.bias", w[f"{name}.bias"]),
            axis=-1,
            epsilon=self._shape.epsilon,
        )
