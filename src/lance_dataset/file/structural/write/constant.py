"""Pages without values, or with one value for all items."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.file.structural.encodings.request import Bytes
from lance_dataset.file.structural.encodings.values import Words, words_of
from lance_dataset.file.structural.layout import ConstantLayout, Layer
from lance_dataset.file.structural.write.levels import LevelStream, PageLevels, encode_levels
from lance_dataset.file.structural.write.pages import WrittenPage
from lance_dataset.file.structural.write.span import Span
from lancecodec import bitmap, statistics

__all__ = ["constant_page", "constant_value", "empty_struct_page", "has_width", "null_page"]

_MAX_INLINE_BYTES = 32


def empty_struct_page() -> WrittenPage:
    """Return a page of structs without children, for which nothing is stored."""
    return WrittenPage(ConstantLayout((Layer.NULLABLE_ITEM,)), [], "structs without a child have no values")


def null_page(levels: PageLevels, compressed: bool) -> WrittenPage:
    """Return a page in which no item has a value.

    Parameters
    ----------
    levels
        Levels of the page.
    compressed
        True if levels may be encoded, which is allowed from 2.2 on.
    """
    reason = "all values are null" if levels.num_visible_items else "no list has an item"
    layers = levels.layers
    if layers == (Layer.NULLABLE_ITEM,):
        return WrittenPage(ConstantLayout(layers), [], reason)
    if not compressed:
        return WrittenPage(ConstantLayout(layers), _raw_levels(levels), reason)
    end = np.array([levels.num_items], np.int64)
    rep, definition = (
        None if stream is None else encode_levels(stream, end, runs=True)
        for stream in (levels.repetition, levels.definition)
    )
    layout = ConstantLayout(
        layers,
        rep=None if rep is None else rep.encoding,
        definition=None if definition is None else definition.encoding,
        num_rep_values=0 if rep is None else levels.num_items,
        num_def_values=0 if definition is None else levels.num_items,
    )
    return WrittenPage(layout, [_parts(rep), _parts(definition)], reason)


def _parts(stream: LevelStream | None) -> list[Bytes]:
    return [] if stream is None else [stream.data]


def _raw_levels(levels: PageLevels) -> list[list[Bytes]]:
    return [[] if stream is None else [stream] for stream in (levels.repetition, levels.definition)]


def has_width(kind: pa.DataType) -> bool:
    """Return False for binaries of width 0, which are all equal and can be stored only in constant pages."""
    return not pa.types.is_fixed_size_binary(kind) or kind.byte_width > 0


def constant_page(span: Span) -> WrittenPage | None:
    """Return a page with one value for all non-null items (2.2 and later), None if they differ.

    Values are compared bit by bit: the two zeros of a floating-point type differ. Only booleans, fixed-width values
    without children, strings and binaries have such pages.
    """
    value = constant_value(span.values, span.validity) if has_width(span.values.type) else b""
    if value is None:
        return None
    levels = span.levels
    layers = levels.layers
    buffers = _raw_levels(levels) if levels.has_streams else []
    reason = "all values are equal"
    if isinstance(value, bytes) and len(value) <= _MAX_INLINE_BYTES:
        return WrittenPage(ConstantLayout(layers, inline_value=value), buffers, reason)
    scalar = _scalar_buffer(*((value,) if isinstance(value, bytes) else value))
    return WrittenPage(ConstantLayout(layers), [[scalar], *buffers], reason)


def _scalar_buffer(*parts: bytes) -> bytes:
    """Return the serialized Arrow buffers of an array with one value: their number, their lengths and their bytes."""
    return struct.pack(f"<{1 + len(parts)}I", len(parts), *map(len, parts)) + b"".join(parts)


# -- one value ----------------------------------------------------------------------------------------------------


def constant_value(values: pa.Array, validity: pa.Buffer | None) -> bytes | tuple[bytes, bytes] | None:
    """Return the value that all valid values of a page equal bit by bit.

    The parameters are those of `choose_chunks`.

    Returns
    -------
    bytes, tuple or None
        The value (a boolean as byte 0 or 1). For strings and binaries the Arrow offsets and data of an array with it.
        None if values differ, all are null, or the type has no constant pages (nested types, dictionaries).
    """
    if len(values) == 0:
        return None
    if is_binary_like(values.type):
        return _constant_string(values, validity)
    bits = value_bits(values.type)
    if bits == 0 or (bits % 8 and bits != 1):
        return None
    if bits == 1:
        return _constant_boolean(values, validity)
    return _constant_word(words_of(values, validity))


def _constant_word(words: Words) -> bytes | None:
    data = memoryview(words.buffer).cast("B")
    width = words.width
    if words.validity is None and data[:width] != data[-width:]:
        return None
    probe = min(words.count, 64)
    if words.validity is None and data[: (probe - 1) * width] != data[width : probe * width]:
        return None
    found = (
        statistics.fixed(words.buffer, width, validity=words.validity)
        if width in (1, 2, 4, 8)
        else statistics.fixed_bytes(words.buffer, width, words.validity)
    )
    if not found.all_equal or found.first_valid < 0:
        return None
    return bytes(data[found.first_valid * width : (found.first_valid + 1) * width])


def _constant_boolean(values: pa.Array, validity: pa.Buffer | None) -> bytes | None:
    count = len(values)
    bits = np.empty(count, np.uint8)
    bitmap.unpack(values.buffers()[1], values.offset, count, bits.data)
    if validity is not None:
        valid = np.empty(count, np.uint8)
        bitmap.unpack(validity, 0, count, valid.data)
        bits = bits[valid != 0]
    if len(bits) == 0 or bits.min() != bits.max():
        return None
    return bytes(bits[:1])


def _constant_string(values: pa.Array, validity: pa.Buffer | None) -> tuple[bytes, bytes] | None:
    wide = is_wide(values.type)
    kind = np.dtype(np.int64 if wide else np.int32)
    _, offsets, data = values.buffers()
    begin = values.offset * kind.itemsize
    offsets = offsets.slice(begin, (len(values) + 1) * kind.itemsize)
    found = statistics.variable(data if data is not None else b"", offsets, wide, validity)
    if not found.all_equal or found.first_valid < 0:
        return None
    first, stop = np.frombuffer(offsets, kind, 2, found.first_valid * kind.itemsize).tolist()
    content = data.slice(first, stop - first).to_pybytes() if stop > first else b""
    return np.array([0, len(content)], kind).tobytes(), content
