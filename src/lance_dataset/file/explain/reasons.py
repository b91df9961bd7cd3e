"""Reasons for the encoding of a page, in words and in numbers that the page itself gives."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.encodings.base import Encoding, StoredValues, range_text

__all__ = ["DictionarySize", "why_chunks", "why_constant", "why_zipped"]

#: Values of at least this many bytes are stored one by one unless the field metadata asks for something else.
_WIDE_VALUE = 256


@dataclass(frozen=True)
class DictionarySize:
    """Number and bytes of the entries of a dictionary."""

    entries: int
    size: int


def why_chunks(encoding: Encoding, stored: StoredValues, dictionary: DictionarySize | None) -> str:
    """Return the reason for a mini-block page; with a dictionary, encoding and size are those of the indices."""
    if dictionary is None:
        return encoding.reason(stored)
    entries = dictionary.entries
    each = f"{stored.count / entries:,.1f} values each" if entries else "none used"
    sizes = StoredValues(stored.count, stored.size + dictionary.size, stored.plain).sizes()
    widths = "" if stored.widths is None else f" of {range_text(stored.widths)} bits"
    indices = f"indices{widths} {size_text(stored.size)}, entries {size_text(dictionary.size)}"
    return f"{entries:,} entries for {stored.count:,} values ({each}): {sizes} ({indices})"


def why_zipped(encoding: Encoding, stored: StoredValues, width: int | None, control_words: bool) -> str:
    """Return the reason for a full-zip page; `width` is that of fixed-width values in bytes."""
    why = encoding.reason(stored)
    if width is not None and width < _WIDE_VALUE:
        levels = "each behind its levels" if control_words else "side by side in one buffer without chunks"
        return f"values of {width:,} bytes, {levels}: {why}"
    if width is not None:
        return f"values of {width:,} bytes each, stored one by one so that a row is one read: {why}"
    mean = stored.size / stored.count if stored.count else 0
    return f"values of {mean:,.0f} bytes on average, stored one by one so that a row is one read: {why}"


def why_constant(
    value_type: pa.DataType, count: int, value_bytes: int | None, level_bytes: int, plain: int | None
) -> str:
    """Return the reason for a constant page; `value_bytes` is None if the page has no value."""
    if value_bytes is not None:
        return f"all {count:,} values that are not null are equal: {StoredValues(count, value_bytes, plain).sizes()}"
    if pa.types.is_struct(value_type) and value_type.num_fields == 0:
        return "a struct without fields has no values"
    if level_bytes:
        return f"all {count:,} values are null: only levels are stored"
    return f"all {count:,} values are null: nothing is stored"
