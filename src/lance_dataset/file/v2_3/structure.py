"""Structure of a sparse page: maps rows to the slots of every layer, down to the leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.page import expand_ranges
from lance_dataset.file.v2_3.layout import (
    SparseFixedSizeList,
    SparseLayer,
    SparseList,
    StoredSequence,
    ValiditySet,
)
from lance_dataset.file.v2_3.positions import Counts, ListedPositions, Positions, open_counts, open_positions
from lancecodec import OffsetOverflowError

__all__ = ["LayerSlots", "Slots", "Structure", "check_sparse_layers", "open_structure", "stored_sequences"]

_MAX_SLOTS = 2**40
#: Number of slots of a layer that a read may always ask for. Pages with enough bytes allow more.
_FREE_SLOTS = 1 << 24
#: Slots of several rows that are scanned together, which take some 20 bytes each while the result is made.
_SCANNED_SLOTS = 1 << 21


@dataclass(frozen=True)
class Slots:
    """Some slots of a layer: a range, or, with `chosen`, any slots in any order."""

    start: int
    stop: int
    chosen: NDArray[np.int64] | None = None

    @property
    def count(self) -> int:
        """Number of slots."""
        return self.stop - self.start if self.chosen is None else len(self.chosen)


@dataclass(frozen=True)
class LayerSlots:
    """Validity and lengths of some slots of a layer.

    Attributes
    ----------
    slots
        The slots.
    valid
        Mask of the valid slots; None if all are valid.
    visible
        Mask of the slots that are not below a null struct or fixed-size list; None if there is no such null.
    lengths
        Number of items of each list; None on other layers.
    """

    slots: Slots
    valid: NDArray[np.bool_] | None
    visible: NDArray[np.bool_] | None
    lengths: NDArray[np.int64] | None = None


class Validity:
    """Validity of the slots of a layer."""

    def __init__(self, positions: Positions, lists_valid: bool) -> None:
        self._positions = positions
        self._lists_valid = lists_valid

    @property
    def all_valid(self) -> bool:
        """True if the stored positions alone tell that no slot is null."""
        return self._positions.length == 0 and not self._lists_valid

    def of(self, slots: Slots) -> NDArray[np.bool_] | None:
        """Return a mask of the valid slots, None if all are valid."""
        if self.all_valid:
            return None
        if slots.chosen is not None:
            listed = self._positions.holds(slots.chosen)[1]
        else:
            listed = np.zeros(slots.count, np.bool_)
            listed[self._positions.at(np.arange(*self._positions.span(slots.start, slots.stop))) - slots.start] = True
        valid = listed if self._lists_valid else ~listed
        return None if valid.all() else valid

    def before(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of valid slots before each of `slots`."""
        found = self._positions.find(slots)
        return found if self._lists_valid else slots - found


class _Lists:
    """Places of the items of the lists of a layer."""

    def __init__(self, positions: Positions, counts: Counts) -> None:
        self._positions = positions
        self._counts = counts

    def items(self, slots: Slots) -> tuple[NDArray[np.int64], Slots]:
        """Return the number of items of each list, and the slots of all items."""
        if slots.chosen is not None:
            return self._chosen_items(slots.chosen)
        first, last = self._positions.span(slots.start, slots.stop)
        index = np.arange(first, last)
        lengths = np.zeros(slots.count, np.int64)
        lengths[self._positions.at(index) - slots.start] = self._counts.at(index)
        start, stop = self._counts.before(np.array([first, last])).tolist()
        return lengths, Slots(start, stop)

    def _chosen_items(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], Slots]:
        index, found = self._positions.holds(slots)
        lengths = np.zeros(len(slots), np.int64)
        lengths[found] = self._counts.at(index[found])
        total = lengths.sum(dtype=np.float64)
        if total > _FREE_SLOTS:
            raise OffsetOverflowError(f"{len(slots)} lists of more than {_FREE_SLOTS} items together")
        return lengths, Slots(0, 0, expand_ranges(self._counts.before(index), lengths))


@dataclass(frozen=True)
class _Layer:
    """A decoded layer."""

    validity: Validity
    lists: _Lists | None = None
    dimension: int = 1


class Structure:
    """Decoded layers of a page.

    Attributes
    ----------
    leaf_slots
        Number of slots of the leaf.
    values
        Validity of the leaf slots that hold a value: valid and not below a null fixed-size list.
    num_values
        Number of slots that hold a value.
    """

    def __init__(self, layers: Sequence[_Layer], leaf_slots: int, stored_bytes: int) -> None:
        self._layers = layers
        self._limit = max(_FREE_SLOTS, 64 * stored_bytes)
        self._scanned = max(_SCANNED_SLOTS, stored_bytes // 4)
        self.leaf_slots = leaf_slots
        self.values = self._value_slots()
        self.num_values = int(self.values.before(np.array([leaf_slots]))[0])

    def _value_slots(self) -> Validity:
        """Return the leaf slots with a value. Slots below a null struct are null, those below a null fixed-size list
        need not be.
        """
        last_list = max((number for number, layer in enumerate(self._layers) if layer.lists is not None), default=-1)
        inner = self._layers[last_list + 1 :]
        leaf = inner[-1].validity
        if all(layer.dimension == 1 or layer.validity.all_valid for layer in inner):
            return leaf
        if self.leaf_slots > self._limit:
            raise CorruptFileError(f"{self.leaf_slots} values below fixed-size lists in a page of few bytes")
        valid = np.ones(self.leaf_slots, np.bool_)
        repeat = 1
        for layer in reversed(inner):
            repeat *= layer.dimension
            mask = layer.validity.of(Slots(0, self.leaf_slots // repeat))
            if mask is not None:
                valid &= np.repeat(mask, repeat)
        return Validity(ListedPositions(np.flatnonzero(valid)), lists_valid=True)

    def descend(self, rows: Slots) -> list[LayerSlots]:
        """Find the slots of each layer that belong to some rows, outermost layer first.

        Raises
        ------
        OffsetOverflowError
            The rows contain too many values.
        CorruptFileError
            A null list has items.
        """
        slots, visible, found = rows, None, []
        limit = self._limit if rows.count == 1 or rows.chosen is not None else self._scanned
        for layer in self._layers:
            if slots.count > limit:
                raise OffsetOverflowError(f"more than {limit} values below {rows.count} rows")
            valid, lengths, below = layer.validity.of(slots), None, slots
            if layer.lists is not None:
                lengths, below = layer.lists.items(slots)
                if valid is not None and lengths[~valid].any():
                    raise CorruptFileError("null lists with items")
            elif layer.dimension != 1:
                below = _multiplied(slots, layer.dimension)
            found.append(LayerSlots(slots, valid, visible, lengths))
            slots, visible = below, _visible_below(layer, valid, visible)
        return found


def _visible_below(
    layer: _Layer, valid: NDArray[np.bool_] | None, visible: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    if layer.lists is not None:
        return None
    if valid is not None:
        visible = valid if visible is None else visible & valid
    return visible if visible is None or layer.dimension == 1 else np.repeat(visible, layer.dimension)


def _multiplied(slots: Slots, dimension: int) -> Slots:
    """Return the slots of the items of fixed-size lists."""
    if slots.chosen is None:
        return Slots(slots.start * dimension, slots.stop * dimension)
    if len(slots.chosen) * dimension > _FREE_SLOTS:
        raise OffsetOverflowError(f"{len(slots.chosen)} lists of more than {_FREE_SLOTS} items together")
    return Slots(0, 0, (slots.chosen[:, None] * dimension + np.arange(dimension)).reshape(-1))


# -- from the layout ---------------------------------------------------------------------------------------------


def check_sparse_layers(layers: Sequence[SparseLayer], branch: Branch, where: str) -> None:
    """Raise CorruptFileError unless the layers of a page fit the type."""
    expected = [(nest.kind, nest.dimension) for nest in branch.above] + [("struct", 1)]
    found = [_kind(layer) for layer in layers]
    if found != expected:
        raise CorruptFileError(f"{where}: layers {found} do not fit the type {branch.arrow_type}")


def _kind(layer: SparseLayer) -> tuple[str, int]:
    if isinstance(layer, SparseList):
        return "list", 1
    if isinstance(layer, SparseFixedSizeList):
        return "fixed_size_list", layer.dimension
    return "struct", 1


def stored_sequences(layers: Sequence[SparseLayer]) -> Iterator[StoredSequence]:
    """Yield the sequences of the layers in the order of their buffers."""
    for layer in layers:
        if isinstance(layer, SparseList):
            yield layer.positions
            yield layer.counts
        yield layer.validity.positions


def open_structure(
    layers: Sequence[SparseLayer], rows: int, payloads: Sequence[pa.Buffer], stored_bytes: int
) -> Structure:
    """Decode and check the layers.

    Parameters
    ----------
    layers
        The layers, outermost first.
    rows
        Number of slots of the outermost layer.
    payloads
        A buffer for each of `stored_sequences` that has a payload.
    stored_bytes
        Bytes of the page, including values.

    Raises
    ------
    CodecError, CorruptFileError
        The layers contradict themselves or each other.
    UnsupportedError
        Sequences do not have this encoding.
    """
    stored, slots, opened = iter(payloads), rows, []
    for layer in layers:
        lists, below = None, slots
        if isinstance(layer, SparseList):
            positions = open_positions(layer.positions, _next(layer.positions, stored), slots)
            below = layer.num_child_slots
            lists = _Lists(positions, open_counts(layer.counts, _next(layer.counts, stored), below))
        validity = _open_validity(layer.validity, stored, slots)
        dimension = layer.dimension if isinstance(layer, SparseFixedSizeList) else 1
        opened.append(_Layer(validity, lists, dimension))
        slots = below * dimension
        if slots > _MAX_SLOTS:
            raise CorruptFileError(f"claims {slots} values")
    return Structure(opened, slots, stored_bytes)


def _next(sequence: StoredSequence, payloads: Iterator[pa.Buffer]) -> pa.Buffer | None:
    return next(payloads) if sequence.encoding.has_payload else None


def _open_validity(stored: ValiditySet, payloads: Iterator[pa.Buffer], slots: int) -> Validity:
    positions = open_positions(stored.positions, _next(stored.positions, payloads), slots)
    return Validity(positions, stored.lists_valid)
