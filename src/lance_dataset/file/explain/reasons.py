"""Why a page is stored as it is, in words and numbers that the page itself gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_dataset.file.explain.table import size_text
from lance_dataset.file.v2_1 import compressive as ce
from lancecodec import CodecError, fsst

__all__ = ["Chosen", "why_chunks", "why_constant", "why_zipped"]

#: Values of so many bytes are stored one by one unless the field metadata asks for something else.
_WIDE_VALUE = 256


@dataclass(frozen=True)
class Chosen:
    """The values of a page as stored.

    Attributes
    ----------
    encoding
        Of the values; with a dictionary, of the indices.
    count
        Number of values.
    size
        Bytes of the values, or of the indices.
    plain
        Bytes of the values as they are, None if unknown.
    widths
        Least and largest width of bit-packed chunks.
    runs
        Stored runs of run-length encoding.
    entries, entry_bytes
        Number and bytes of the entries of the dictionary; None without one.
    """

    encoding: ce.Encoding
    count: int
    size: int
    plain: int | None
    widths: tuple[int, int] | None = None
    runs: int | None = None
    entries: int | None = None
    entry_bytes: int = 0


def _instead(size: int, plain: int | None, name: str = "plain") -> str:
    return size_text(size) if plain is None else f"{size_text(size)} instead of {size_text(plain)} {name}"


def why_chunks(chosen: Chosen) -> str:
    """The reason of a mini-block page."""
    if chosen.entries is None:
        return _why(chosen)
    each = f"{chosen.count / chosen.entries:,.1f} values each" if chosen.entries else "none used"
    sizes = _instead(chosen.size + chosen.entry_bytes, chosen.plain)
    widths = "" if chosen.widths is None else f" of {_range(chosen.widths)} bits"
    indices = f"indices{widths} {size_text(chosen.size)}, entries {size_text(chosen.entry_bytes)}"
    return f"{chosen.entries:,} entries for {chosen.count:,} values ({each}): {sizes} ({indices})"


def why_zipped(chosen: Chosen, width: int | None, control_words: bool) -> str:
    """The reason of a full-zip page; `width` is that of fixed-width values in bytes."""
    if width is not None and width < _WIDE_VALUE:
        levels = "each behind its levels" if control_words else "side by side in one buffer without chunks"
        return f"values of {width:,} bytes, {levels}: {_why(chosen)}"
    if width is not None:
        return f"values of {width:,} bytes each, stored one by one so that a row is one read: {_why(chosen)}"
    mean = chosen.size / chosen.count if chosen.count else 0
    return f"values of {mean:,.0f} bytes on average, stored one by one so that a row is one read: {_why(chosen)}"


def why_constant(
    value_type: pa.DataType, count: int, value_bytes: int | None, level_bytes: int, plain: int | None
) -> str:
    """The reason of a constant page; `value_bytes` is None if there is no value."""
    if value_bytes is not None:
        return f"all {count:,} values that are not null are equal: {_instead(value_bytes, plain)}"
    if pa.types.is_struct(value_type) and value_type.num_fields == 0:
        return "a struct without fields has no values"
    if level_bytes:
        return f"all {count:,} values are null: only levels are stored"
    return f"all {count:,} values are null: nothing is stored"


# -- by encoding -------------------------------------------------------------------------------------------------


def _why(chosen: Chosen) -> str:
    describe = _REASONS.get(type(chosen.encoding))
    return _instead(chosen.size, chosen.plain) if describe is None else describe(chosen, chosen.encoding)


def _range(widths: tuple[int, int]) -> str:
    return str(widths[0]) if widths[0] == widths[1] else f"{widths[0]} to {widths[1]}"


def _flat(chosen: Chosen, encoding: ce.Flat) -> str:
    return f"{chosen.count:,} values of {encoding.bits} bits as they are: {size_text(chosen.size)}"


def _variable(chosen: Chosen, encoding: ce.Variable) -> str:
    return f"{chosen.count:,} values and their offsets as they are: {size_text(chosen.size)}"


def _packed(chosen: Chosen, encoding: ce.InlineBitpacking) -> str:
    widths = "" if chosen.widths is None else f"the values of a chunk fit in {_range(chosen.widths)} of "
    return f"{widths}{encoding.bits} bits: {_instead(chosen.size, chosen.plain, 'flat')}"


def _fsst(chosen: Chosen, encoding: ce.Fsst) -> str:
    table = size_text(len(encoding.symbol_table))
    try:
        symbols = fsst.SymbolTable(encoding.symbol_table)
    except CodecError:
        return f"symbol table of {table} that cannot be read"
    if not symbols.compressed:
        return f"a symbol table that leaves the text as it is: {_instead(chosen.size, chosen.plain)}"
    sizes = f"{_instead(chosen.size, chosen.plain)}, and {table} of symbols in the description of the page"
    return f"{len(symbols.symbols)} frequent strings as codes of one byte: {sizes}"


def _rle(chosen: Chosen, encoding: ce.Rle) -> str:
    sizes = _instead(chosen.size, chosen.plain, "flat")
    if not chosen.runs:
        return f"runs of equal values: {sizes}"
    return f"{chosen.runs:,} runs of {chosen.count / chosen.runs:,.1f} equal values on average: {sizes}"


def _split(chosen: Chosen, encoding: ce.ByteStreamSplit) -> str:
    streams = f"byte i of all values together, {encoding.bits // 8} streams"
    return f"{streams}, which compress better: {_instead(chosen.size, chosen.plain, 'flat')}"


def _general(chosen: Chosen, encoding: ce.General) -> str:
    what = " after byte-stream split" if isinstance(encoding.values, ce.ByteStreamSplit) else ""
    return f"{encoding.scheme} makes it smaller{what}: {_instead(chosen.size, chosen.plain)}"


def _fixed_size_list(chosen: Chosen, encoding: ce.FixedSizeList) -> str:
    nulls = ", each with a bitmap of null items" if encoding.has_validity else ""
    return f"{chosen.count:,} lists of {encoding.dimension:,} items as they are{nulls}: {size_text(chosen.size)}"


def _packed_struct(chosen: Chosen, encoding: ce.PackedStruct | ce.VariablePackedStruct) -> str:
    fields = len(encoding.bits) if isinstance(encoding, ce.PackedStruct) else len(encoding.fields)
    return f"a struct marked as packed: {fields} fields row by row, {size_text(chosen.size)}"


_REASONS: dict[type, Callable[[Chosen, Any], str]] = {
    ce.Flat: _flat,
    ce.Variable: _variable,
    ce.InlineBitpacking: _packed,
    ce.Fsst: _fsst,
    ce.Rle: _rle,
    ce.ByteStreamSplit: _split,
    ce.General: _general,
    ce.FixedSizeList: _fixed_size_list,
    ce.PackedStruct: _packed_struct,
    ce.VariablePackedStruct: _packed_struct,
}
