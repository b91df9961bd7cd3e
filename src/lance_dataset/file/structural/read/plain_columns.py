"""Plans of the pages of 2.1 and later versions that are read together with those of other columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.container import FileMetadata, page_description
from lance_dataset.file.plain_pages import DictionaryPlan, PagePlan, PlainPages, find_plain_columns
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.layout import FullZipLayout, Layer, MiniBlockLayout
from lance_dataset.file.structural.read.levels import level_codec
from lance_dataset.file.structural.read.page import PageGrammar
from lance_dataset.types.schema import Field
from lancecodec import CodecError, miniblock_values, plain_columns

__all__ = ["levels_of", "open_plain_columns", "plan_of_layout"]

_NEVER_NULL = (Layer.ALL_VALID_ITEM,)
_NULLABLE = (Layer.NULLABLE_ITEM,)
_MOST_WIDTH = 64


def open_plain_columns(
    metadata: FileMetadata, fields: Sequence[Field], indices: Sequence[int], num_rows: int, grammar: PageGrammar
) -> PlainPages | None:
    """Find the plain columns of some fields; `grammar` describes the pages of the file version.

    See `find_plain_columns`.
    """
    if not grammar.is_plain:
        return None
    return find_plain_columns(metadata, fields, indices, num_rows, partial(_plan, grammar, num_rows))


@lru_cache(maxsize=4096)
def _plan(
    grammar: PageGrammar, rows: int, kind: pa.DataType, nullable: bool, column: bytes, page: bytes
) -> PagePlan | None:
    """Return the plan of a page of a description, None if it is not plain or broken."""
    described, bits = page_description(column, page), value_bits(kind)
    if described is None or bits == 0 or (bits % 8 and bits != 1) or bits > 8 * _MOST_WIDTH:
        return None
    type_name, encoding = described
    if grammar.of(type_name) is not grammar:
        return None
    try:
        return plan_of_layout(grammar.parse(encoding), kind, rows, nullable)
    except (CodecError, CorruptFileError, UnsupportedError):
        return None


def plan_of_layout(layout: Any, kind: pa.DataType, rows: int, nullable: bool) -> PagePlan | None:
    """Return the plan of a page of values of a fixed size, None if it is not plain. Raises as a parser of layouts."""
    bits = value_bits(kind)
    if isinstance(layout, FullZipLayout):
        placed = bits % 8 == 0 and layout.is_side_by_side(bits, rows)
        return (plain_columns.IN_PLACE, bits, bits, 1, False, 0.0, None, None) if placed else None
    if not isinstance(layout, MiniBlockLayout):
        return None
    encoding = layout.values
    if (
        layout.rep is not None
        or layout.indexed
        or layout.num_items != rows
        or encoding.is_text
        or encoding.inner is not encoding
        or layout.num_buffers != encoding.num_buffers
    ):
        return None
    is_plain, levels = levels_of(layout, nullable)
    codec, stored = encoding.chunk_codec("")
    entries = None if layout.dictionary is None else _entries(layout.dictionary, layout.dictionary_size, kind)
    if not is_plain or (entries is None and stored != bits):
        return None
    return codec, bits, stored, layout.num_buffers, layout.large, sum(encoding.least_bits), levels, entries


def levels_of(layout: MiniBlockLayout, nullable: bool) -> tuple[bool, tuple[int, int] | None]:
    """Return whether a page has no other levels than those of nulls, and the codec of these."""
    if layout.definition is None:
        return layout.layers == _NEVER_NULL, None
    return nullable and layout.layers == _NULLABLE, level_codec(layout.definition, "")


def _entries(encoding: Encoding, count: int, kind: pa.DataType) -> DictionaryPlan:
    """Return the plan of the entries of a dictionary."""
    codec = encoding.entries_codec(value_bits(kind))
    if codec is not None:
        return codec, count, None

    def decode(file: pa.Buffer, position: int, size: int) -> pa.Buffer | None:
        try:
            return encoding.entries(file.slice(position, size), count, kind, "").buffers()[1]
        except (CodecError, CorruptFileError, UnsupportedError):
            return None

    return miniblock_values.FLAT, count, decode
