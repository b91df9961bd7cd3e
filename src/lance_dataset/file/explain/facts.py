"""Facts about a page that are known without decoding it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.file.explain.report import StoredBuffer
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.structural.arrays import value_bits

__all__ = ["Facts", "plain_size"]


@dataclass(frozen=True)
class Facts:
    """Findings about one page; attributes that are not listed here are as in `PageEncoding`.

    Attributes
    ----------
    why
        Reason for the way it is stored, as far as the page tells without decoding.
    is_plain
        True if the values are stored without compression.
    """

    layout: str
    encoding: str
    values: int
    buffers: tuple[StoredBuffer, ...]
    why: str
    is_plain: bool = False
    levels: str = ""
    dictionary_entries: int | None = None
    chunks: int | None = None
    value_bytes: int | None = None
    level_bytes: int | None = None
    plain_bytes: int | None = None
    bit_widths: tuple[int, int] | None = None


def plain_size(arrow_type: pa.DataType, values: int, data: int | None = None) -> int | None:
    """Return the bytes of the values without compression, None if that is unknown.

    Parameters
    ----------
    data
        Total bytes of all strings or binaries, if known.
    """
    if pa.types.is_dictionary(arrow_type):
        return plain_size(arrow_type.value_type, values, data)
    if is_binary_like(arrow_type):
        return None if data is None else data + (values + 1) * (8 if is_wide(arrow_type) else 4)
    if pa.types.is_fixed_size_list(arrow_type):
        return plain_size(arrow_type.value_type, values * arrow_type.list_size, data)
    if pa.types.is_struct(arrow_type):
        sizes = [plain_size(field.type, values) for field in arrow_type]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    return (values * value_bits(arrow_type) + 7) // 8
