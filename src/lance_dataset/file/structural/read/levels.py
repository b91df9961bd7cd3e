"""Stored levels of pages, and nested Arrow arrays of branches built from leaf values and levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate, private_copy
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.layout import Layer
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.logical import fixed_list_length
from lancecodec import CodecError, take_pages
from lancecodec.level_unraveler import LevelUnraveler

__all__ = [
    "LeafValues",
    "assemble",
    "check_layers",
    "decode_levels",
    "level_codec",
    "list_levels",
    "with_validity_bitmap",
]

_LEVEL_BITS = 16


@dataclass(frozen=True)
class LeafValues:
    """Some rows of a page.

    Attributes
    ----------
    values
        A value for every visible item, without nulls.
    num_items
        Number of items of the rows.
    repetition, definition
        16-bit levels, one per item; None if the page has none.
    """

    values: pa.Array
    num_items: int
    repetition: pa.Buffer | None = None
    definition: pa.Buffer | None = None


def check_layers(layers: tuple[Layer, ...], branch: Branch, where: str) -> None:
    """Raise CorruptFileError unless the layers of a page fit the type."""
    kinds = [False, *(nest.kind == "list" for nest in reversed(branch.above))]
    if [layer.is_list for layer in layers] != kinds:
        names = [layer.name for layer in layers]
        raise CorruptFileError(f"{where}: layers {names} do not fit the type {branch.arrow_type}")


def assemble(leaf: LeafValues, layers: tuple[Layer, ...], branch: Branch) -> pa.Array:
    """Return the rows as an array of ``branch.arrow_type``, without an offset.

    Raises
    ------
    CodecError
        The levels contradict the layers.
    CorruptFileError
        Levels and values do not fit each other, or a required field has nulls.
    """
    if leaf.repetition is None and leaf.definition is None:
        return _without_levels(leaf.values, branch)
    if not branch.above:
        return _flat(leaf, layers, branch)
    dimensions = [0, *(nest.dimension if nest.kind == "fixed_size_list" else 0 for nest in reversed(branch.above))]
    levels = LevelUnraveler(leaf.repetition, leaf.definition, leaf.num_items, layers, dimensions)
    lengths, nulls = levels.lengths, levels.null_counts
    if lengths[0] != len(leaf.values):
        raise CorruptFileError(f"the levels have {lengths[0]} visible items, the page {len(leaf.values)} values")
    _check_required(nulls, leaf.definition, layers, branch)
    array = leaf.values
    if nulls[0]:
        array = with_validity_bitmap(array, _bitmap(levels, 0), nulls[0])
    for depth, nest in enumerate(reversed(branch.above), start=1):
        validity = _bitmap(levels, depth) if nulls[depth] else None
        buffers = [validity]
        if nest.kind == "list":
            wide = nest.field.logical_type.startswith("large_list")
            offsets = allocate((lengths[depth] + 1) * (8 if wide else 4))
            levels.offsets(depth, offsets, wide)
            buffers.append(offsets)
        kind = branch.types[depth]
        array = pa.Array.from_buffers(kind, lengths[depth], buffers, nulls[depth], 0, [array])
    return array


def _check_required(
    nulls: Sequence[int], definition: pa.Buffer | None, layers: tuple[Layer, ...], branch: Branch
) -> None:
    """Raise CorruptFileError if a required field has nulls, except those that null ancestors cause."""
    fields = [branch.leaf, *(nest.field for nest in reversed(branch.above))]
    if definition is None or all(field.nullable or not count for field, count in zip(fields, nulls, strict=True)):
        return
    levels = np.frombuffer(definition, np.uint16)
    below = 0
    for field, layer in zip(fields, layers, strict=True):
        if not field.nullable and layer.levels and layer is not Layer.EMPTYABLE_LIST:
            own = np.count_nonzero(levels == below + 1)
            if own:
                raise CorruptFileError(f"{own} values of {field.name!r} are null, though it is declared not nullable")
        below += layer.levels


def _flat(leaf: LeafValues, layers: tuple[Layer, ...], branch: Branch) -> pa.Array:
    levels = LevelUnraveler(leaf.repetition, leaf.definition, leaf.num_items, layers)
    if leaf.num_items != len(leaf.values):
        raise CorruptFileError(f"{leaf.num_items} levels for {len(leaf.values)} values")
    nulls = levels.null_counts[0]
    if not nulls:
        return leaf.values
    _check_required([nulls], leaf.definition, layers, branch)
    return with_validity_bitmap(leaf.values, _bitmap(levels, 0), nulls)


def _bitmap(levels: LevelUnraveler, layer: int) -> pa.Buffer:
    bits = allocate((levels.lengths[layer] + 7) // 8)
    levels.validity(layer, bits)
    return bits


def _without_levels(array: pa.Array, branch: Branch) -> pa.Array:
    for nest, kind in zip(reversed(branch.above), branch.types[1:], strict=True):
        length = len(array) // fixed_list_length(nest.field.logical_type) if nest.kind != "struct" else len(array)
        array = pa.Array.from_buffers(kind, length, [None], 0, 0, [array])
    return array


def with_validity_bitmap(array: pa.Array, validity: pa.Buffer, nulls: int) -> pa.Array:
    """Return an array without nulls and offset under a validity bitmap."""
    kind, length = array.type, len(array)
    if pa.types.is_dictionary(kind):
        data = array.indices.buffers()[1]
        return pa.DictionaryArray.from_buffers(kind, length, [validity, data], array.dictionary, nulls)
    if pa.types.is_struct(kind):
        children = [array.field(number) for number in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, length, [validity], nulls, 0, children)
    if pa.types.is_fixed_size_list(kind):
        return pa.Array.from_buffers(kind, length, [validity], nulls, 0, [array.values])
    return pa.Array.from_buffers(kind, length, [validity, *array.buffers()[1:]], nulls)


# -- stored levels -----------------------------------------------------------------------------------------------


def level_codec(encoding: Encoding | None, where: str) -> tuple[int, int] | None:
    """Return the codec of the levels in chunks, in kernel numbering, and their packed width; None without levels."""
    if encoding is None:
        return None
    codec = encoding.level_codec
    if codec is None:
        raise UnsupportedError(f"{where}: levels with encoding {encoding} cannot be read by this release")
    return codec


def decode_levels(buffer: pa.Buffer, encoding: Encoding | None, count: int, where: str) -> pa.Buffer:
    """Decode 16-bit levels into new memory; levels without an encoding are stored plainly."""
    if encoding is not None:
        return encoding.block(buffer, count, _LEVEL_BITS, where)
    if buffer.size != 2 * count:
        raise CorruptFileError(f"{where}: {buffer.size} bytes are not {count} levels")
    return private_copy(buffer)


def list_levels(
    layers: tuple[Layer, ...], repetition: tuple[int, int] | None, started: memoryview, required: bool
) -> take_pages.Lists:
    """Describe the lists of a page with an item layer and a list layer to the kernels.

    Raises CodecError if the page does not have these layers.

    Parameters
    ----------
    layers
        The layers, inner-most first.
    repetition
        The codec of the repetition levels, in the numbering of the kernels.
    started
        See `RepetitionIndex`.
    required
        True if a null list is corruption.
    """
    if len(layers) != 2 or repetition is None:
        raise CodecError(f"layers {list(layers)} are not lists of values")
    items, lists = layers
    return take_pages.Lists(
        started,
        repetition,
        null_items=items is Layer.NULLABLE_ITEM,
        null_lists=lists in (Layer.NULLABLE_LIST, Layer.NULL_AND_EMPTY_LIST),
        empty_lists=lists in (Layer.EMPTYABLE_LIST, Layer.NULL_AND_EMPTY_LIST),
        required=required,
    )
