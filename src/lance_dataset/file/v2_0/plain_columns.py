"""Plans of the pages of 2.0 that are read together with those of other columns: values side by side, perhaps nulls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import bit_width
from lance_dataset.file.container import FileMetadata, page_description
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.plain_pages import PagePlan, PlainPages, find_plain_columns
from lance_dataset.file.v2_0.nodes import PAGE_ENCODING, BufferRef, Flat, Node, Nullable, parse_page_encoding
from lance_dataset.types.schema import Field
from lancecodec import plain_columns

__all__ = ["open_plain_columns"]

_FIRST_BUFFER, _SECOND_BUFFER = BufferRef(0), BufferRef(1)
#: Validity in front of the values.
_VALIDITY = Flat(1, _FIRST_BUFFER)
_MOST_WIDTH = 64


def open_plain_columns(
    metadata: FileMetadata, fields: Sequence[Field], indices: Sequence[int], num_rows: int
) -> PlainPages | None:
    """Find the plain columns of some fields; see `find_plain_columns`."""
    return find_plain_columns(metadata, fields, indices, num_rows, _plan)


@lru_cache(maxsize=256)
def _plan(kind: pa.DataType, nullable: bool, column: bytes, page: bytes) -> PagePlan | None:
    """Return the plan of a page of a description, None if it is not plain or broken."""
    described = page_description(column, page)
    bits = _bits(kind)
    if described is None or described[0] != PAGE_ENCODING or bits is None:
        return None
    try:
        node: Node | None = parse_page_encoding(described[1])
    except (CorruptFileError, UnsupportedError):
        return None
    validity: Node | None = None
    while isinstance(node, Nullable) and validity is None:
        validity = node.validity
        node = node.values
    if not isinstance(node, Flat) or node.scheme or node.bits != bits:
        return None
    if validity is not None:
        if validity != _VALIDITY or node.buffer != _SECOND_BUFFER or not nullable:
            return None
        return plain_columns.SIDE_BY_SIDE, bits, bits, 2, False, 0.0, None, None
    if node.buffer != _FIRST_BUFFER:
        return None
    codec = plain_columns.SIDE_BY_SIDE if bits == 1 else plain_columns.IN_PLACE
    return codec, bits, bits, 1, False, 0.0, None, None


def _bits(kind: pa.DataType) -> int | None:
    """Return the bits of a value of a type whose values are stored side by side, None for every other type."""
    if pa.types.is_dictionary(kind) or pa.types.is_nested(kind) or is_binary_like(kind):
        return None
    try:
        bits = bit_width(kind)
    except ValueError:
        return None
    return bits if bits == 1 or (bits % 8 == 0 and 0 < bits <= 8 * _MOST_WIDTH) else None
