"""Pages with a dictionary of their own: dictionary-typed columns, and strings that the writer encoded so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import private_integers
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.v2_0.nodes import Dictionary, Fixed, Node, unwrapped
from lance_dataset.file.v2_0.page import Page
from lancecodec import OffsetOverflowError

__all__ = ["encoded_strings", "index_type", "over_items", "trimmed"]

#: Reads values ``[start, stop)`` of a node of `total` values: (page, node, total, type, start, stop).
ReadNode: TypeAlias = "Callable[[Page, Node, int, pa.DataType, int, int], pa.Array]"

_INDEX_TYPES = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


def index_type(page: Page, node: Dictionary, arrow_type: pa.DataType) -> pa.DataType:
    """Return the type of the indices of a page.

    Raises
    ------
    CorruptFileError
        Values of the type cannot be stored in this way.
    """
    if pa.types.is_dictionary(arrow_type):
        return arrow_type.index_type
    stored = unwrapped(node.indices)
    known = _INDEX_TYPES.get(stored.bits) if isinstance(stored, Fixed) else None
    if stored is None:  # all values are null
        known = pa.uint8()
    if known is None or not is_binary_like(arrow_type):
        raise CorruptFileError(f"{page.where}: a dictionary of these indices does not fit the type {arrow_type}")
    return known


def over_items(page: Page, node: Dictionary, arrow_type: pa.DataType, indices: pa.Array, read: ReadNode) -> pa.Array:
    """Return the values of a page for its indices, which nobody else can change; `read` decodes the items, once."""
    is_typed = pa.types.is_dictionary(arrow_type)
    items = _items(page, node, arrow_type.value_type if is_typed else arrow_type, read)
    return _typed(page, arrow_type, indices, items) if is_typed else _strings(page, arrow_type, indices, items)


def encoded_strings(
    page: Page, node: Dictionary, arrow_type: pa.DataType, start: int, stop: int, read: ReadNode
) -> pa.Array:
    """Return strings ``[start, stop)`` as a dictionary array; decode them if the dictionary is larger or has nulls."""
    indices = private_integers(read(page, node.indices, page.length, index_type(page, node, arrow_type), start, stop))
    items = _items(page, node, arrow_type, read)
    if items.null_count or len(items) > stop - start:
        return _strings(page, arrow_type, indices, items)
    return pa.DictionaryArray.from_arrays(_zero_based(page, indices, items), items, safe=False)


def _items(page: Page, node: Dictionary, item_type: pa.DataType, read: ReadNode) -> pa.Array:
    return page.cache.get(
        (page.start, item_type),
        lambda: read(page, node.items, node.size, item_type, 0, node.size),
        lambda items: items.nbytes,
    )


def _strings(page: Page, arrow_type: pa.DataType, indices: pa.Array, items: pa.Array) -> pa.Array:
    zero_based = _zero_based(page, indices, items)
    if not is_wide(arrow_type):
        _check_total(items, zero_based)
    return items.take(zero_based)


def _zero_based(page: Page, indices: pa.Array, items: pa.Array) -> pa.Array:
    """Return values of indices in the form that writers use for strings: 0 is null, k is item k - 1."""
    codes = np.asarray(pc.fill_null(indices, 0) if indices.null_count else indices)
    if len(codes) and int(codes.max()) > len(items):
        raise CorruptFileError(f"{page.where}: dictionary index {int(codes.max())} of {len(items)} items")
    valid = codes > 0
    return pa.array(codes - codes.dtype.type(1), mask=None if valid.all() else ~valid)


def _check_total(items: pa.Array, indices: pa.Array) -> None:
    """Raise if the values together have more bytes than 32-bit offsets can address."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(items), 0), np.int64)
    used = np.asarray(indices.drop_null() if indices.null_count else indices).astype(np.int64)
    uses = np.bincount(used, minlength=len(items))
    if int(lengths @ uses) > np.iinfo(np.int32).max:
        raise OffsetOverflowError("the values of the range have more than 2**31 - 1 bytes")


def _typed(page: Page, arrow_type: pa.DictionaryType, indices: pa.Array, items: pa.Array) -> pa.Array:
    """Return values of a dictionary-typed column: plain indices; a null is a null item or (0.16) a null index."""
    if len(indices) - indices.null_count:
        bounds = pc.min_max(indices).as_py()
        if bounds["min"] < 0 or bounds["max"] >= len(items):
            raise CorruptFileError(f"{page.where}: dictionary index outside its {len(items)} items")
    if items.null_count:
        target, items = page.cache.get(
            (page.start, arrow_type, "valid"),
            lambda: _without_null_items(items, arrow_type.index_type),
            lambda pair: pair[0].nbytes + pair[1].nbytes,
        )
        indices = target.take(indices)
    return pa.DictionaryArray.from_arrays(indices, items, ordered=arrow_type.ordered, safe=False)


def _without_null_items(items: pa.Array, index_type: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Return the index of each item among the valid items (null for a null item), and the valid items."""
    valid = np.asarray(items.is_valid())
    renumber = np.cumsum(valid) - 1
    return pa.array(renumber, mask=~valid).cast(index_type), items.filter(pa.array(valid))


def trimmed(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the same values over a dictionary without unused entries, if it is too large."""
    if len(array) >= len(array.dictionary):
        return array
    kind = array.type
    used = pa.array(np.unique(np.asarray(array.indices.drop_null())), kind.index_type)  # preserves their order
    indices = pc.index_in(array.indices, used).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, array.dictionary.take(used), ordered=kind.ordered, safe=False)
