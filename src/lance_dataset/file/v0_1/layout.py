"""Kind of page that holds the values of a field in a legacy (0.1) file."""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import bit_width
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.types.schema import Field

__all__ = ["PageKind", "bits_per_row", "page_kind"]


class PageKind(Enum):
    """Kinds of pages."""

    #: Structs: no page of their own, only those of the children.
    NONE = auto()
    #: Nulls: a page without bytes.
    NULL = auto()
    #: Values of a fixed number of bits, back to back; fixed-size lists are stored as their items.
    FIXED = auto()
    #: Indices into values that are in the manifest; stored as `FIXED`.
    DICTIONARY = auto()
    #: Bytes of the values, then 64-bit offsets that count from the start of the file.
    BINARY = auto()
    #: Offsets into the page of the items; one more than the number of lists.
    LIST = auto()


def page_kind(field: Field) -> PageKind:
    """Return the kind of page of a field.

    Raises
    ------
    UnsupportedError
        Legacy files cannot hold the type.
    """
    if field.logical_type == "struct":
        return PageKind.NONE
    if field.logical_type.removesuffix(".struct") in ("list", "large_list"):
        return PageKind.LIST
    try:
        return _leaf_kind(field.storage_type)
    except ValueError as error:
        raise UnsupportedError(f"field {field.name!r}: legacy (0.1) files cannot hold {field.storage_type}") from error


@lru_cache(maxsize=256)
def _leaf_kind(arrow_type: pa.DataType) -> PageKind:
    if pa.types.is_null(arrow_type):
        return PageKind.NULL
    if pa.types.is_dictionary(arrow_type):
        return PageKind.DICTIONARY
    if is_binary_like(arrow_type):
        return PageKind.BINARY
    bits_per_row(arrow_type)
    return PageKind.FIXED


def bits_per_row(arrow_type: pa.DataType) -> int:
    """Return the number of bits of a value of a `PageKind.FIXED` field; raise ValueError for other types."""
    if pa.types.is_fixed_size_list(arrow_type):
        return arrow_type.list_size * bits_per_row(arrow_type.value_type)
    return bit_width(arrow_type)
