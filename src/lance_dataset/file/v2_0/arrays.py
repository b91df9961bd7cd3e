"""A range of a 2.0 page as an Arrow array, for every encoding a leaf column can have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import (
    aligned,
    allocate,
    bit_width,
    bitmap_at_zero,
    concat_arrays,
    with_validity,
)
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.file.v2_0.nodes import Binary, Dictionary, FixedSizeList, Flat, Node, Nullable, plain_flat
from lance_dataset.file.v2_0.page import Page
from lancecodec import OffsetOverflowError, utf8
from lancecodec import offsets as offset_codec

__all__ = [
    "check_nulls_fit",
    "has_nothing_but_nulls",
    "read_page",
    "take_dictionary",
]

#: A page of nulls has no bytes that its length could be checked against; writers cut pages far below this.
_MAX_NULL_BYTES = 1 << 30


def read_page(page: Page, arrow_type: pa.DataType, start: int, stop: int) -> pa.Array:
    """Values ``[start, stop)`` of a page of a leaf column.

    Raises
    ------
    CodecError, CorruptFileError
        The content contradicts the encoding (a CodecError without saying where).
    """
    return _read(page, page.node, page.length, arrow_type, start, stop)


def _read(page: Page, node: Node, total: int, arrow_type: pa.DataType, start: int, stop: int) -> pa.Array:
    """`total` is the number of values of the whole node."""
    if isinstance(node, Nullable):
        return _read_nullable(page, node, total, arrow_type, start, stop)
    if isinstance(node, Flat):
        return _read_flat(page, node, None, total, arrow_type, start, stop)
    if isinstance(node, FixedSizeList):
        return _read_fixed_size_list(page, node, None, total, arrow_type, start, stop)
    if isinstance(node, Binary):
        return _read_binary(page, node, total, arrow_type, start, stop)
    if isinstance(node, Dictionary):
        if pa.types.is_dictionary(arrow_type):
            return _read_dictionary(page, node, total, arrow_type, start, stop)
        return _read_string_dictionary(page, node, total, arrow_type, start, stop)
    raise CorruptFileError(f"{page.where}: encoding {type(node).__name__} does not fit a column of type {arrow_type}")


def _read_nullable(page: Page, node: Nullable, total: int, arrow_type: pa.DataType, start: int, stop: int) -> pa.Array:
    if node.values is None:
        return _nulls(page, stop - start, arrow_type)
    if node.validity is None:
        return _read(page, node.values, total, arrow_type, start, stop)
    if isinstance(node.values, Flat):
        return _read_flat(page, node.values, node.validity, total, arrow_type, start, stop)
    if isinstance(node.values, FixedSizeList):
        return _read_fixed_size_list(page, node.values, node.validity, total, arrow_type, start, stop)
    values = _read(page, node.values, total, arrow_type, start, stop)
    return with_validity(values, _read_validity(page, node.validity, total, start, stop))


def _nulls(page: Page, length: int, arrow_type: pa.DataType) -> pa.Array:
    """One array of nulls serves all pages of the column that have nothing else."""
    check_nulls_fit(arrow_type, length, page.where)
    # Rounding up makes pages of all lengths share a few arrays.
    most = int(_MAX_NULL_BYTES // (_null_bytes(arrow_type) or 1))
    rounded = max(length, min((1 << length.bit_length()) - 1, most))
    key = ("nulls", arrow_type, rounded)
    shared = page.cache.get(key, lambda: pa.nulls(rounded, arrow_type), lambda nulls: nulls.nbytes)
    return shared.slice(0, length)


def has_nothing_but_nulls(node: Node) -> bool:
    """Whether a page stores no bytes at all for its values."""
    while not (isinstance(node, Nullable) and node.values is None):
        if isinstance(node, FixedSizeList):
            node = node.items
        elif isinstance(node, Nullable) and node.validity is None and node.values is not None:
            node = node.values
        else:
            return False
    return True


def check_nulls_fit(arrow_type: pa.DataType, length: int, where: str) -> None:
    """Refuse nulls that would take more memory together than a page may.

    Raises
    ------
    CorruptFileError
        They would.
    """
    if length * _null_bytes(arrow_type) > _MAX_NULL_BYTES:
        raise CorruptFileError(f"{where}: claims {length} nulls of type {arrow_type}, more than a page can hold")


def _null_bytes(arrow_type: pa.DataType) -> float:
    """Memory that a null of the type takes."""
    if pa.types.is_fixed_size_list(arrow_type):
        return 1 / 8 + arrow_type.list_size * _null_bytes(arrow_type.value_type)
    if pa.types.is_null(arrow_type):
        return 0
    if pa.types.is_dictionary(arrow_type):
        return _null_bytes(arrow_type.index_type)
    return 8 if is_binary_like(arrow_type) else bit_width(arrow_type) / 8


def _read_validity(page: Page, validity: Flat, total: int, start: int, stop: int) -> pa.Buffer:
    """Bitmap of ``[start, stop)`` from bit 0 on."""
    base = start & ~7
    return bitmap_at_zero(page.read_flat(validity, base, stop, total), start - base, stop - start)


def _read_flat(
    page: Page, flat: Flat, validity: Flat | None, total: int, arrow_type: pa.DataType, start: int, stop: int
) -> pa.Array:
    width = _bit_width(page, arrow_type)
    if width != flat.bits:
        raise CorruptFileError(f"{page.where}: {flat.bits} bits per value do not fit the type {arrow_type}")
    base = start & ~7
    values = aligned(page.read_flat(flat, base, stop, total), width // 8)
    bits = page.read_flat(validity, base, stop, total) if validity is not None else None
    return pa.Array.from_buffers(arrow_type, stop - start, [bits, values], offset=start - base)


def _bit_width(page: Page, arrow_type: pa.DataType) -> int:
    try:
        return bit_width(arrow_type)
    except ValueError as error:
        raise CorruptFileError(f"{page.where}: a flat encoding does not fit the type {arrow_type}") from error


def _read_fixed_size_list(
    page: Page, node: FixedSizeList, validity: Flat | None, total: int, arrow_type: pa.DataType, start: int, stop: int
) -> pa.Array:
    if not pa.types.is_fixed_size_list(arrow_type) or arrow_type.list_size != node.dimension:
        raise CorruptFileError(f"{page.where}: lists of {node.dimension} items do not fit the type {arrow_type}")
    size = node.dimension
    items = _read(page, node.items, total * size, arrow_type.value_type, start * size, stop * size)
    bits = _read_validity(page, validity, total, start, stop) if validity is not None else None
    return pa.Array.from_buffers(arrow_type, stop - start, [bits], children=[items])


def _read_binary(page: Page, node: Binary, total: int, arrow_type: pa.DataType, start: int, stop: int) -> pa.Array:
    if not is_binary_like(arrow_type):
        raise CorruptFileError(f"{page.where}: a binary encoding does not fit the type {arrow_type}")
    wide, length = is_wide(arrow_type), stop - start
    before = max(start - 1, 0)
    ends = page.read_flat(node.ends, before, stop, total)
    if node.adjustment == 0 and total:
        raise CorruptFileError(f"{page.where}: the null adjustment is 0")
    if node.data.scheme:
        content = page.decompress(node.data, _last_end(page, node, total), exact=False)
        available = content.size
    else:
        position, available = page.locate(node.data.buffer)
    limit = max(min(available, node.adjustment - 1), 0)
    offsets, validity = allocate((length + 1) * (8 if wide else 4)), allocate((length + 7) // 8)
    first, last, nulls = offset_codec.decode(
        ends, start - before, stop - before, node.adjustment, limit, wide, offsets, validity
    )
    page.discard_flat(node.ends, before, stop)
    data = content.slice(first, last - first) if node.data.scheme else page.source.read(position + first, last - first)
    if is_text(arrow_type):
        utf8.validate(data, offsets, wide)
    return pa.Array.from_buffers(arrow_type, length, [validity if nulls else None, offsets, data], null_count=nulls)


def _last_end(page: Page, node: Binary, total: int) -> int:
    """Number of bytes that the values of the whole node have."""
    if total == 0:
        return 0
    end = int.from_bytes(page.read_flat(node.ends, total - 1, total, total).to_pybytes(), "little")
    return end % node.adjustment


def _read_items(page: Page, node: Dictionary, arrow_type: pa.DataType) -> pa.Array:
    """The dictionary of a page, decoded once for all ranges."""
    key = (page.start, arrow_type)
    return page.cache.get(
        key, lambda: _read(page, node.items, node.size, arrow_type, 0, node.size), lambda items: items.nbytes
    )


def _read_string_dictionary(
    page: Page, node: Dictionary, total: int, arrow_type: pa.DataType, start: int, stop: int
) -> pa.Array:
    """The writer's optimisation of string columns: u8 indices, 0 is null, k is item k - 1."""
    flat = plain_flat(node.indices)
    if not is_binary_like(arrow_type) or flat is None or flat.bits != 8:
        raise CorruptFileError(f"{page.where}: a dictionary of these indices does not fit the type {arrow_type}")
    indices = np.frombuffer(page.read_flat(flat, start, stop, total), np.uint8)
    items = _read_items(page, node, arrow_type)
    if len(indices) and int(indices.max()) > len(items):
        raise CorruptFileError(f"{page.where}: dictionary index {int(indices.max())} of {len(items)} items")
    valid = indices > 0
    if not is_wide(arrow_type):
        _check_total(items, indices)
    zero_based = pa.array((indices - 1).astype(np.uint8), mask=None if valid.all() else ~valid)
    return items.take(zero_based)


def _check_total(items: pa.Array, indices: NDArray[np.uint8]) -> None:
    """Refuse to put more bytes together than 32-bit offsets reach."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(items), 0), np.int64)
    uses = np.bincount(indices, minlength=256)[1 : len(lengths) + 1]
    if int(lengths @ uses) > np.iinfo(np.int32).max:
        raise OffsetOverflowError("the values of the range have more than 2**31 - 1 bytes")


def _read_dictionary(
    page: Page, node: Dictionary, total: int, arrow_type: pa.DictionaryType, start: int, stop: int
) -> pa.Array:
    """A dictionary-typed column: plain indices; a null is a null item or (0.16) a null index."""
    indices = _read(page, node.indices, total, arrow_type.index_type, start, stop)
    return _over_items(page, node, arrow_type, indices)


def take_dictionary(
    page: Page, node: Dictionary, arrow_type: pa.DictionaryType, runs: list[tuple[int, int]], rows: NDArray[np.int64]
) -> pa.Array:
    """Some values of a page of a dictionary-typed column, over a dictionary no greater than is of use.

    Parameters
    ----------
    runs
        Ascending ranges of the page that together hold `rows`.
    rows
        Ascending positions in the page.

    Raises
    ------
    CodecError, CorruptFileError
        As `read_page`.
    """
    pieces = []
    for first, end in runs:
        low, high = np.searchsorted(rows, (first, end))
        indices = _read(page, node.indices, page.length, arrow_type.index_type, first, end)
        pieces.append(indices if end - first == high - low else indices.take(pa.array(rows[low:high] - first)))
    array = _over_items(page, node, arrow_type, concat_arrays(pieces, arrow_type.index_type))
    if len(rows) >= len(array.dictionary):
        return array
    used = pa.array(np.unique(np.asarray(array.indices.drop_null())), arrow_type.index_type)  # keeps their order
    indices = pc.index_in(array.indices, used).cast(arrow_type.index_type)
    return pa.DictionaryArray.from_arrays(indices, array.dictionary.take(used), ordered=arrow_type.ordered, safe=False)


def _over_items(page: Page, node: Dictionary, arrow_type: pa.DictionaryType, indices: pa.Array) -> pa.Array:
    items = _read_items(page, node, arrow_type.value_type)
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
    """For each item its index among those that are not null (null for a null one), and these."""
    valid = np.asarray(items.is_valid())
    renumber = np.cumsum(valid) - 1
    return pa.array(renumber, mask=~valid).cast(index_type), items.filter(pa.array(valid))
