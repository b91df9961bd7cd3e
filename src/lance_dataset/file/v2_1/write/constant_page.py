"""Pages without a value, or with the same one throughout."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from lance_dataset.file.v2_1.layout import ConstantLayout, Layer
from lance_dataset.file.v2_1.write.constant_values import constant_value
from lance_dataset.file.v2_1.write.encoded import Bytes
from lance_dataset.file.v2_1.write.level_streams import LevelStream, encode_levels
from lance_dataset.file.v2_1.write.page_levels import PageLevels
from lance_dataset.file.v2_1.write.span import Span
from lance_dataset.file.v2_1.write.written import WrittenPage

__all__ = ["constant_page", "empty_struct_page", "has_width", "null_page"]

_MAX_INLINE_BYTES = 32


def empty_struct_page() -> WrittenPage:
    """Structs without a child: nothing is stored of them."""
    return WrittenPage(ConstantLayout((Layer.NULLABLE_ITEM,)), [], "structs without a child have no values")


def null_page(levels: PageLevels, compressed: bool) -> WrittenPage:
    """A page no item of which has a value.

    Parameters
    ----------
    levels
        Of the page.
    compressed
        Whether levels may be encoded, as from 2.2 on.
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
    """Whether values take any room: binaries of width 0 are all equal, and nothing but constant pages holds them."""
    return not pa.types.is_fixed_size_binary(kind) or kind.byte_width > 0


def constant_page(span: Span) -> WrittenPage | None:
    """The page of one value for all items that are not null (2.2 and later); None if they differ.

    Bits decide: the two zeros of a floating-point type differ. Types other than booleans, fixed-width values without
    children, strings and binaries have no such pages.
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
    """The Arrow buffers of an array of one value, behind their number and lengths."""
    return struct.pack(f"<{1 + len(parts)}I", len(parts), *map(len, parts)) + b"".join(parts)
