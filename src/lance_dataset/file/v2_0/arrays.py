"""Reading a range of a 2.0 page as an Arrow array, for every encoding of a leaf column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import (
    aligned,
    allocate,
    bit_width,
    bitmap_at_zero,
    private_integers,
    with_validity,
)
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.file.v2_0.dictionaries import index_type, over_items
from lance_dataset.file.v2_0.nodes import (
    Binary,
    Dictionary,
    Fixed,
    FixedSizeBinary,
    FixedSizeList,
    Flat,
    Fsst,
    Node,
    Nullable,
    symbol_table,
)
from lance_dataset.file.v2_0.page import Page, part_of
from lance_dataset.file.v2_0.values import (
    MAX_UNBACKED_BYTES,
    discard_values,
    num_stored,
    read_private_values,
    read_values,
)
from lancecodec import OffsetOverflowError, utf8
from lancecodec import offsets as offset_codec

__all__ = [
    "binary_ends",
    "check_nulls_fit",
    "end_limit",
    "equal_offsets",
    "expand_codes",
    "fixed_width",
    "has_nothing_but_nulls",
    "list_size",
    "masked",
    "nulls_of",
    "raw_type",
    "read_content",
    "read_node",
    "read_page",
    "unfit",
]

_MAX_NARROW = 2**31 - 1


def read_page(page: Page, arrow_type: pa.DataType, start: int, stop: int) -> pa.Array:
    """Read values ``[start, stop)`` of a page of a leaf column.

    Raises
    ------
    CodecError, CorruptFileError
        The content contradicts the encoding. A CodecError does not name the place.
    """
    return read_node(page, page.node, page.length, arrow_type, start, stop)


def read_node(page: Page, node: Node, total: int, arrow_type: pa.DataType, start: int, stop: int) -> pa.Array:
    """Read values of a node; `total` is the number of values of the whole node."""
    if isinstance(node, Nullable):
        return _read_nullable(page, node, total, arrow_type, start, stop)
    if isinstance(node, Fixed):
        return _read_fixed(page, node, None, total, arrow_type, start, stop)
    if isinstance(node, FixedSizeList):
        return _read_fixed_size_list(page, node, None, total, arrow_type, start, stop)
    if isinstance(node, Binary):
        return _read_binary(page, node, total, arrow_type, start, stop)
    if isinstance(node, FixedSizeBinary):
        return _read_fixed_size_binary(page, node, total, arrow_type, start, stop)
    if isinstance(node, Fsst):
        codes = read_node(page, node.codes, total, raw_type(page, node, arrow_type), start, stop)
        return expand_codes(codes, node.table, arrow_type)
    if isinstance(node, Dictionary):
        indices = read_node(page, node.indices, total, index_type(page, node, arrow_type), start, stop)
        return over_items(page, node, arrow_type, private_integers(indices), read_node)
    raise unfit(page, node, arrow_type)


def unfit(page: Page, node: Node, arrow_type: pa.DataType) -> CorruptFileError:
    """Return the error for an encoding that does not fit the type of the values."""
    return CorruptFileError(f"{page.where}: encoding {type(node).__name__} does not fit a column of type {arrow_type}")


def _read_nullable(page: Page, node: Nullable, total: int, arrow_type: pa.DataType, start: int, stop: int) -> pa.Array:
    if node.values is None:
        return nulls_of(page, stop - start, arrow_type)
    if node.validity is None:
        return read_node(page, node.values, total, arrow_type, start, stop)
    if isinstance(node.values, Fixed):
        return _read_fixed(page, node.values, node.validity, total, arrow_type, start, stop)
    if isinstance(node.values, FixedSizeList):
        return _read_fixed_size_list(page, node.values, node.validity, total, arrow_type, start, stop)
    values = read_node(page, node.values, total, arrow_type, start, stop)
    return masked(values, _read_validity(page, node.validity, total, start, stop))


def masked(array: pa.Array, validity: pa.Buffer) -> pa.Array:
    """Return `array` with further nulls: every value whose bit is clear."""
    if pa.types.is_dictionary(array.type):
        indices = with_validity(array.indices, validity)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=array.type.ordered, safe=False)
    return with_validity(array, validity)


def nulls_of(page: Page, length: int, arrow_type: pa.DataType) -> pa.Array:
    """Return a slice of an array of nulls that is shared by all pages of the column without values."""
    check_nulls_fit(arrow_type, length, page.where)
    # Rounding up makes pages of all lengths share a few arrays.
    most = int(MAX_UNBACKED_BYTES // (_null_bytes(arrow_type) or 1))
    rounded = max(length, min((1 << length.bit_length()) - 1, most))
    key = ("nulls", arrow_type, rounded)
    shared = page.cache.get(key, lambda: pa.nulls(rounded, arrow_type), lambda nulls: nulls.nbytes)
    return shared.slice(0, length)


def has_nothing_but_nulls(node: Node) -> bool:
    """Return True if a page stores no bytes for its values."""
    while not (isinstance(node, Nullable) and node.values is None):
        if isinstance(node, FixedSizeList):
            node = node.items
        elif isinstance(node, Nullable) and node.validity is None and node.values is not None:
            node = node.values
        else:
            return False
    return True


def check_nulls_fit(arrow_type: pa.DataType, length: int, where: str) -> None:
    """Check that nulls do not take more memory than a page may.

    Raises
    ------
    CorruptFileError
        They take more.
    """
    if length * _null_bytes(arrow_type) > MAX_UNBACKED_BYTES:
        raise CorruptFileError(f"{where}: claims {length} nulls of type {arrow_type}, more than a page can hold")


def _null_bytes(arrow_type: pa.DataType) -> float:
    """Return the memory in bytes that a null of the type takes."""
    if pa.types.is_fixed_size_list(arrow_type):
        return 1 / 8 + arrow_type.list_size * _null_bytes(arrow_type.value_type)
    if pa.types.is_null(arrow_type):
        return 0
    if pa.types.is_dictionary(arrow_type):
        return _null_bytes(arrow_type.index_type)
    return 8 if is_binary_like(arrow_type) else bit_width(arrow_type) / 8


def _read_validity(page: Page, validity: Fixed, total: int, start: int, stop: int) -> pa.Buffer:
    """Return the bitmap of ``[start, stop)`` from bit 0 on."""
    base = start & ~7
    return bitmap_at_zero(read_private_values(page, validity, base, stop, total), start - base, stop - start)


def _read_fixed(
    page: Page, node: Fixed, validity: Fixed | None, total: int, arrow_type: pa.DataType, start: int, stop: int
) -> pa.Array:
    base = start & ~7  # where a bitmap can be cut
    width = fixed_width(page, node, arrow_type)
    values = aligned(read_values(page, node, base, stop, total), width // 8)
    bits = read_private_values(page, validity, base, stop, total) if validity is not None else None
    return pa.Array.from_buffers(arrow_type, stop - start, [bits, values], offset=start - base)


def fixed_width(page: Page, node: Fixed, arrow_type: pa.DataType) -> int:
    """Return the number of bits of a value, which must match the type."""
    width = _bit_width(page, arrow_type)
    if width != node.bits:
        raise CorruptFileError(f"{page.where}: {node.bits} bits per value do not fit the type {arrow_type}")
    return width


def _bit_width(page: Page, arrow_type: pa.DataType) -> int:
    try:
        return bit_width(arrow_type)
    except ValueError as error:
        raise CorruptFileError(f"{page.where}: a flat encoding does not fit the type {arrow_type}") from error


def _read_fixed_size_list(
    page: Page,
    node: FixedSizeList,
    validity: Fixed | None,
    total: int,
    arrow_type: pa.DataType,
    start: int,
    stop: int,
) -> pa.Array:
    size = list_size(page, node, arrow_type)
    items = read_node(page, node.items, total * size, arrow_type.value_type, start * size, stop * size)
    bits = _read_validity(page, validity, total, start, stop) if validity is not None else None
    return pa.Array.from_buffers(arrow_type, stop - start, [bits], children=[items])


def list_size(page: Page, node: FixedSizeList, arrow_type: pa.DataType) -> int:
    """Return the number of items per list, which must match the type."""
    if not pa.types.is_fixed_size_list(arrow_type) or arrow_type.list_size != node.dimension:
        raise CorruptFileError(f"{page.where}: lists of {node.dimension} items do not fit the type {arrow_type}")
    return node.dimension


# -- strings and binaries ----------------------------------------------------------------------------------------


def _read_binary(page: Page, node: Binary, total: int, arrow_type: pa.DataType, start: int, stop: int) -> pa.Array:
    if not is_binary_like(arrow_type):
        raise unfit(page, node, arrow_type)
    wide, length = is_wide(arrow_type), stop - start
    if total == 0:
        return pa.array([], arrow_type)
    ends_node = binary_ends(page, node)
    before = max(start - 1, 0)
    ends = read_values(page, ends_node, before, stop, total)
    limit, content = read_content(page, node, total, streams=True)
    offsets, validity = allocate((length + 1) * (8 if wide else 4)), allocate((length + 7) // 8)
    first, last, nulls = offset_codec.decode(
        ends, start - before, stop - before, node.adjustment, limit, wide, offsets, validity
    )
    discard_values(page, ends_node, before, stop)
    if content is not None:
        data = part_of(content, first, last)
    elif node.data is None:
        data = pa.py_buffer(b"")
    elif isinstance(node.data, Flat) and node.data.scheme:
        data = page.decompress_range(node.data, first, last)
    else:
        data = read_values(page, node.data, first, last, limit)
    if is_text(arrow_type):
        data = _valid_text(page, node.data, data, offsets, wide)
        if isinstance(node.data, Flat):
            discard_values(page, node.data, first, last)
    return pa.Array.from_buffers(arrow_type, length, [validity if nulls else None, offsets, data], null_count=nulls)


def _valid_text(page: Page, node: Fixed | None, data: pa.Buffer, offsets: pa.Buffer, wide: bool) -> pa.Buffer:
    """Check bytes of strings that `read_values` returned for a node; return a copy if they are a view of the file."""
    if not (isinstance(node, Flat) and not node.scheme and page.source.mapped is not None):
        utf8.validate(data, offsets, wide)
        return data
    copy = allocate(data.size)
    utf8.copy(data, offsets, wide, copy)
    return copy


def binary_ends(page: Page, node: Binary) -> Fixed:
    """Return the ends of a page that has values."""
    if node.ends is None:
        raise CorruptFileError(f"{page.where}: its binary values have no ends")
    if node.adjustment == 0:
        raise CorruptFileError(f"{page.where}: the null adjustment is 0")
    return node.ends


def read_content(page: Page, node: Binary, total: int, streams: bool = False) -> tuple[int, pa.Buffer | None]:
    """Return the maximum end of the node's values, and the bytes if all of them are needed to read any.

    With `streams`, they are not if they are too many to be kept; see `Page.decompress_range`.
    """
    if node.data is None:
        return 0, None
    if isinstance(node.data, Flat) and node.data.scheme:
        size = _last_end(page, node, total)
        if streams and page.is_streamed(node.data, size):
            return end_limit(node, size), None
        content = page.decompress(node.data, size, exact=False)
        return end_limit(node, content.size), content
    return end_limit(node, num_stored(page, node.data)), None


def end_limit(node: Binary, available: int) -> int:
    """Return the highest end that values with `available` bytes can have."""
    return max(min(available, node.adjustment - 1), 0)


def _last_end(page: Page, node: Binary, total: int) -> int:
    """Return the number of bytes of the values of the whole node."""
    end = read_values(page, binary_ends(page, node), total - 1, total, total)
    return int.from_bytes(end.to_pybytes(), "little") % node.adjustment


def _read_fixed_size_binary(
    page: Page, node: FixedSizeBinary, total: int, arrow_type: pa.DataType, start: int, stop: int
) -> pa.Array:
    per = node.per_value
    data = read_values(page, node.data, start * per, stop * per, total * per)
    offsets = equal_offsets(page, node, arrow_type, stop - start)
    if is_text(arrow_type):
        data = _valid_text(page, node.data, data, offsets, is_wide(arrow_type))
    return pa.Array.from_buffers(arrow_type, stop - start, [None, offsets, data])


def equal_offsets(page: Page, node: FixedSizeBinary, arrow_type: pa.DataType, length: int) -> pa.Buffer:
    """Return the offsets of values of equal length."""
    if not is_binary_like(arrow_type):
        raise unfit(page, node, arrow_type)
    if node.width == 0:
        check_nulls_fit(arrow_type, length, page.where)
    wide = is_wide(arrow_type)
    if not wide and length * node.width > _MAX_NARROW:
        raise OffsetOverflowError("the values of the range have more than 2**31 - 1 bytes")
    return pa.py_buffer(np.arange(length + 1, dtype=np.int64 if wide else np.int32) * node.width)


def raw_type(page: Page, node: Node, arrow_type: pa.DataType) -> pa.DataType:
    """Return the type of strings that are still encoded."""
    if not is_binary_like(arrow_type):
        raise unfit(page, node, arrow_type)
    return pa.large_binary() if is_wide(arrow_type) else pa.binary()


def expand_codes(codes: pa.Array, table: bytes, arrow_type: pa.DataType) -> pa.Array:
    """Decode strings from FSST codes; null codes give null strings.

    Raises
    ------
    CodecError
        The codes do not belong to the table, or the strings are not valid text.
    OffsetOverflowError
        The strings have more bytes than 32-bit offsets can address.
    """
    wide, length = is_wide(arrow_type), len(codes)
    if length == 0:
        return pa.array([], arrow_type)
    kind = np.int64 if wide else np.int32
    validity, stored, content = codes.buffers()
    ends = np.frombuffer(stored, kind, length + 1, codes.offset * kind().itemsize)
    first, last = int(ends[0]), int(ends[-1])
    content = pa.py_buffer(b"") if content is None else content.slice(first, last - first)
    symbols = symbol_table(table)
    size = symbols.decoded_size(content)
    if not wide and size > _MAX_NARROW:
        raise OffsetOverflowError("the values of the range have more than 2**31 - 1 bytes")
    offsets, data = np.zeros(length + 1, kind), allocate(size)
    symbols.decode(content, ends[1:].data, wide, first, length, 0, wide, offsets[1:].data, data)
    if is_text(arrow_type):
        utf8.validate(data, offsets.data, wide)
    bits = bitmap_at_zero(validity, codes.offset, length) if codes.null_count else None
    return pa.Array.from_buffers(arrow_type, length, [bits, pa.py_buffer(offsets), data], codes.null_count)
