"""Sparse pages: positions and counts instead of levels, and values by leaf slot."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.kinds import is_empty_struct
from lance_dataset.file.structural.layout import ConstantLayout, Layer
from lance_dataset.file.structural.nesting import Branch, Nest
from lance_dataset.file.structural.read.levels import with_validity_bitmap
from lance_dataset.file.structural.read.page import Page
from lance_dataset.file.v2_3.layout import SparseLayout
from lance_dataset.file.v2_3.planes import ValuePlane, is_packed_plane, open_plane, plane_buffers
from lance_dataset.file.v2_3.structure import (
    LayerSlots,
    Slots,
    Structure,
    check_sparse_layers,
    open_structure,
    stored_sequences,
)
from lance_dataset.properties import cached_property
from lance_dataset.types.schema import Field
from lancecodec import OffsetOverflowError

__all__ = ["SparsePage"]

_INT32_MAX = 2**31 - 1
_NO_VALUES = ConstantLayout((Layer.NULLABLE_ITEM,))


class SparsePage:
    """A page without levels, read as nested arrays; see `NestedPage`.

    Parameters
    ----------
    page
        A page with a sparse layout.
    layout
        The layout of the page.
    branch
        The leaf and the fields above it.
    """

    def __init__(self, page: Page, layout: SparseLayout, branch: Branch) -> None:
        check_sparse_layers(layout.layers, branch, page.where)
        self._page = page
        self._layout = layout
        self._branch = branch
        self._value_buffers = plane_buffers(layout.values)
        page.require_buffers(
            self._value_buffers + sum(stored.encoding.has_payload for stored in stored_sequences(layout.layers))
        )

    # -- parts that are read once per open file -----------------------------------------------------------------

    @cached_property
    def _structure(self) -> Structure:
        page = self._page
        payloads = [page.read(buffer) for buffer in range(self._value_buffers, len(page.buffers))]
        return open_structure(self._layout.layers, page.length, payloads, sum(size for _, size in page.buffers))

    @cached_property
    def _values(self) -> ValuePlane:
        layout, structure, value_type = self._layout.values, self._structure, self._branch.leaf.storage_type
        if layout == _NO_VALUES and structure.num_values and not is_empty_struct(value_type):
            raise CorruptFileError(f"{self._page.where}: {structure.num_values} valid values in a page without values")
        count = structure.num_values if is_packed_plane(layout) else structure.leaf_slots
        return open_plane(self._page, layout, count, value_type)

    # -- rows ----------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> pa.Array:
        """See `NestedPage.read`."""
        return self._assemble(self._structure.descend(Slots(start, stop)))

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `NestedPage.take`."""
        return self._assemble(self._structure.descend(Slots(0, 0, rows)))

    def _assemble(self, layers: list[LayerSlots]) -> pa.Array:
        branch = self._branch
        array = self._leaf(layers[-1])
        for depth, nest in enumerate(reversed(branch.above), start=1):
            array = _nested(nest, branch.types[depth], layers[-1 - depth], array)
        return array

    # -- values --------------------------------------------------------------------------------------------------

    def _leaf(self, layer: LayerSlots) -> pa.Array:
        slots, valid = layer.slots, _valid(self._branch.leaf, layer)
        if is_packed_plane(self._layout.values):
            return self._packed_values(slots)
        if slots.chosen is None:
            values = self._values.read(slots.start, slots.stop)
        else:
            values = self._values.take(slots.chosen)
        if valid is None or pa.types.is_null(values.type):
            return values
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return with_validity_bitmap(values, bitmap, int(np.count_nonzero(~valid)))

    def _packed_values(self, slots: Slots) -> pa.Array:
        """Return values of a plane that leaves out nulls, with the nulls restored."""
        where, leaf = self._structure.values, self._branch.leaf
        held = where.of(slots)
        if slots.chosen is None:
            start, stop = where.before(np.array([slots.start, slots.stop])).tolist()
            values = self._values.read(start, stop)
        else:
            values = self._values.take(where.before(slots.chosen if held is None else slots.chosen[held]))
        return values if held is None else _spread(values, held, leaf.nullable)


def _valid(field: Field, layer: LayerSlots) -> NDArray[np.bool_] | None:
    """Return the mask of valid slots of a field. Nulls of a required field below a null parent do not matter."""
    if layer.valid is None or field.nullable:
        return layer.valid
    nulls = ~layer.valid if layer.visible is None else ~layer.valid & layer.visible
    if nulls.any():
        raise CorruptFileError(
            f"{np.count_nonzero(nulls)} values of {field.name!r} are null, though it is declared not nullable"
        )
    return None


def _spread(values: pa.Array, held: NDArray[np.bool_], nullable: bool) -> pa.Array:
    """Return the values at the slots that hold one; other slots get null, or any value if the field is required."""
    if len(values) == 0:
        return pa.nulls(len(held), values.type)
    index = np.cumsum(held, dtype=np.int64) - 1
    return values.take(pa.array(index, mask=~held) if nullable else pa.array(np.maximum(index, 0)))


def _nested(nest: Nest, kind: pa.DataType, layer: LayerSlots, items: pa.Array) -> pa.Array:
    """Return the array of a layer above the leaf, built over its items."""
    nulls, buffers = 0, [None]
    valid = _valid(nest.field, layer)
    if valid is not None:
        nulls = int(np.count_nonzero(~valid))
        buffers = [pa.py_buffer(np.packbits(valid, bitorder="little"))]
    if layer.lengths is not None:
        if len(items) > _INT32_MAX and not pa.types.is_large_list(kind):
            raise OffsetOverflowError("lists of more than 2**31 - 1 items together")
        offsets = np.zeros(layer.slots.count + 1, np.int64 if pa.types.is_large_list(kind) else np.int32)
        np.cumsum(layer.lengths, out=offsets[1:])
        buffers.append(pa.py_buffer(offsets))
    return pa.Array.from_buffers(kind, layer.slots.count, buffers, nulls, 0, [items])
