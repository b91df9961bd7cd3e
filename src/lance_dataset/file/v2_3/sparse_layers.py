"""Conversion of the levels of a page to sparse layers: positions and counts, in the smallest simple encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.bitpacking import OutOfLineBitpacking
from lance_dataset.file.structural.encodings.constant import Constant
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.sequences import Delta, Range
from lance_dataset.file.structural.layout import Layer
from lance_dataset.file.structural.nesting import Branch, Nest
from lance_dataset.file.structural.write.levels import PageLevels
from lance_dataset.file.v2_3.layout import (
    SparseFixedSizeList,
    SparseLayer,
    SparseList,
    SparseValidity,
    StoredSequence,
    ValiditySet,
)
from lancecodec import bitpacking

__all__ = ["SparseLayers", "encode_sequence", "sparse_layers"]

_BITS = 64
_WIDTH = _BITS // 8


@dataclass(frozen=True)
class SparseLayers:
    """Structure of a page.

    Attributes
    ----------
    layers
        Outermost first; the last is the leaf.
    payloads
        The buffers of their sequences, in page order.
    """

    layers: tuple[SparseLayer, ...]
    payloads: list[pa.Buffer]


def encode_sequence(values: NDArray[np.int64]) -> tuple[StoredSequence, pa.Buffer | None]:
    """Encode non-negative numbers: without bytes if they are equal or equidistant, otherwise packed."""
    encoding, payload = _encode(values)
    return StoredSequence(encoding, len(values)), payload


def _encode(values: NDArray[np.int64]) -> tuple[Encoding, pa.Buffer | None]:
    count = len(values)
    if count == 0:
        return Constant(None), None
    start, step = int(values[0]), int(values[1]) - int(values[0]) if count > 1 else 0
    if step >= 0 and (np.diff(values) == step).all():
        return (Range(_BITS, start, step) if step else Constant(start.to_bytes(_WIDTH, "little"))), None
    deltas = np.diff(values)
    if deltas.min() >= 0:
        # differences do not grow with the page, unlike the numbers
        encoding, payload = _pack(deltas)
        if encoding != Flat(_BITS):
            return Delta(_BITS, start, encoding), payload
    return _pack(values)


def _pack(values: NDArray[np.int64]) -> tuple[Encoding, pa.Buffer]:
    words = pa.py_buffer(values.astype("<u8").tobytes())
    width = int(values.max()).bit_length()
    size = bitpacking.out_of_line_size(len(values), _BITS, width)
    if size >= words.size:
        return Flat(_BITS), words
    packed = allocate(size)
    bitpacking.out_of_line_encode(words, _BITS, width, packed)
    return OutOfLineBitpacking(_BITS, width), packed


def sparse_layers(levels: PageLevels, branch: Branch) -> SparseLayers:
    """Return the layers of a page as positions and counts instead of levels.

    Everything below a null struct or a null fixed-size list is null as well.

    Parameters
    ----------
    levels
        Levels of the page.
    branch
        The leaf and the fields above it; lists and fixed-size lists of structs do not occur together.
    """
    walk = _Walk(levels, branch.rows_per_value)
    layers: list[SparseLayer] = []
    nests: Sequence[Nest | None] = [*branch.above, None]
    for nest, layer in zip(nests, reversed(levels.layers), strict=True):
        if nest is not None and nest.kind == "list":
            layers.append(walk.lists(layer))
        elif nest is not None and nest.kind == "fixed_size_list":
            layers.append(walk.fixed_size_lists(layer, nest.dimension))
        else:
            layers.append(walk.items(layer))
    return SparseLayers(tuple(layers), walk.payloads)


@dataclass
class _Walk:
    """Walk from the rows of a page down to its leaf.

    `_slots` are the items (entries of the level streams) at which the slots of the next layer start.
    """

    levels: PageLevels
    items_per_row: int
    payloads: list[pa.Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        levels = self.levels
        self._definition = _stream(levels.definition, levels.num_items)
        self._repetition = _stream(levels.repetition, levels.num_items)
        self._base = levels.max_definition
        self._depth = levels.max_repetition
        if self._depth:
            self._slots = np.flatnonzero(self._repetition == self._depth)
        else:
            self._slots = np.arange(0, levels.num_items, self.items_per_row)

    def items(self, layer: Layer) -> SparseValidity:
        """Return the layer of a struct or of the leaf."""
        return SparseValidity(self._validity(self._descend(layer)))

    def fixed_size_lists(self, layer: Layer, dimension: int) -> SparseFixedSizeList:
        """Return the layer of fixed-size lists of structs, in which every item of the leaf has an entry."""
        validity = self._validity(self._descend(layer))
        self.items_per_row //= dimension
        begins = np.arange(0, dimension * self.items_per_row, self.items_per_row)
        self._slots = (self._slots[:, None] + begins).reshape(-1)
        return SparseFixedSizeList(dimension, validity)

    def lists(self, layer: Layer) -> SparseList:
        """Return the layer of lists or maps."""
        absent = self._descend(layer)
        null = absent
        if layer in (Layer.EMPTYABLE_LIST, Layer.NULL_AND_EMPTY_LIST):
            null = absent & (self._definition[self._slots] != self._base + layer.levels)
        self._depth -= 1
        items = np.flatnonzero((self._repetition >= self._depth) & (self._definition <= self._base))
        filled = np.flatnonzero(~absent)
        bounds = np.append(self._slots[filled], self.levels.num_items)
        positions, counts = self._store(filled), self._store(np.diff(np.searchsorted(items, bounds)))
        validity = self._validity(null)
        self._slots = items
        return SparseList(positions, counts, len(items), validity)

    def _descend(self, layer: Layer) -> NDArray[np.bool_]:
        """Return a mask of the slots with nothing below: nulls, empty lists, or slots inside a null."""
        self._base -= layer.levels
        absent: NDArray[np.bool_] = self._definition[self._slots] > self._base
        return absent

    def _validity(self, null: NDArray[np.bool_]) -> ValiditySet:
        lists_valid = bool(2 * np.count_nonzero(null) > len(null))
        return ValiditySet(self._store(np.flatnonzero(null != lists_valid)), lists_valid)

    def _store(self, values: NDArray[np.int64]) -> StoredSequence:
        stored, payload = encode_sequence(values)
        if payload is not None:
            self.payloads.append(payload)
        return stored


def _stream(levels: bytes | None, count: int) -> NDArray[np.uint16]:
    return np.zeros(count, np.uint16) if levels is None else np.frombuffer(levels, np.uint16)
