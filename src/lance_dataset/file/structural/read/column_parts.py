"""Rows of one column of many small files, decoded into one array.

A table of thousands of small fragments has as many pages of a column, and opening each of them takes longer than
decoding its values. Pages of any other form, and damaged ones, are left to their own readers, which report what is
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import is_pair
from lance_dataset.file.buffers import allocate
from lance_dataset.file.container import page_description
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.plain_columns import ColumnPart, JoinedParts
from lance_dataset.file.plain_pages import PagePlan
from lance_dataset.file.structural.arrays import BinaryDictionary, binary_array, value_bits
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.layout import FullZipLayout, MiniBlockLayout
from lance_dataset.file.structural.read.page import PageGrammar
from lance_dataset.file.structural.read.plain_columns import levels_of, plan_of_layout
from lance_dataset.types.schema import Field
from lancecodec import CodecError, OffsetOverflowError, miniblock_values
from lancecodec.column_parts import INDICES, TEXTS, VALUES, WIDE_TEXTS, ColumnParts

__all__ = ["join_parts"]

#: A dictionary: encoding and number of its entries.
_Dictionary: TypeAlias = "tuple[Encoding, int]"
#: Number of rows of a page, form of the column, dictionary of texts, and plan of the values.
_PartPlan: TypeAlias = "tuple[int, int, _Dictionary | None, PagePlan]"
_Plans: TypeAlias = "dict[tuple[bytes, bytes], _PartPlan | None]"

_MOST_WIDTH = 64
_MOST_PLANS = 1024
#: Values in place are used there if the fragments have as many rows on average: a copy would take longer.
_COPIED_ROWS = 1024
#: Bytes of the values that one array holds.
_ARRAY_BYTES = 64 << 20
#: Larger dictionaries, in bytes as they are stored, are left to readers that keep them.
_SMALL_DICTIONARY = 16 << 10


def join_parts(parts: Sequence[ColumnPart], field: Field, grammar: PageGrammar) -> list[JoinedParts]:
    """Read the parts of a field without children that are small plain pages.

    Parameters
    ----------
    parts
        Rows of mapped files.
    field
        The field, the same for all.
    grammar
        Descriptions of the pages of the file version.

    Returns
    -------
    list of (int, int, pyarrow.Array)
        The values of neighbours, each as the number of the first part, the number after the last one, and an array.
        Other parts are to be read by themselves.
    """
    kind = field.storage_type
    if not grammar.is_plain or is_pair(field) or not (is_binary_like(kind) or 0 < value_bits(kind) <= 8 * _MOST_WIDTH):
        return []
    plans, plan_of = _planner(kind, field.nullable, grammar)
    if len(plans) > _MOST_PLANS:
        plans.clear()
    listed = [
        (part.mapped, part.file.column_table_start, part.column, part.rows, part.start, part.stop) for part in parts
    ]
    found = ColumnParts(listed, plans, plan_of)
    joined: list[JoinedParts] = []
    for form, first, last, rows, size in found.groups(_ARRAY_BYTES):
        for part, place in zip(parts[first:last], found.places(first, last), strict=True):
            part.file.source.read_ranges([place])
        try:
            array = _read(found, parts, form, first, last, rows, size, kind)
        except (CodecError, CorruptFileError, OffsetOverflowError, UnsupportedError):
            continue  # the reader of the part reports what is wrong with it, and where
        if array is not None:
            joined.append((first, last, array))
    return joined


def _read(
    found: ColumnParts,
    parts: Sequence[ColumnPart],
    form: int,
    first: int,
    last: int,
    rows: int,
    size: int,
    kind: pa.DataType,
) -> pa.Array | None:
    """Return the values of some parts as one array, None if a part is damaged."""
    validity = allocate((rows + 7) // 8)
    if form == VALUES:
        values = allocate(size or (rows + 7) // 8)
        nulls = found.read(first, last, values, validity)
        bits = validity if nulls else None
        return None if nulls < 0 else pa.Array.from_buffers(kind, rows, [bits, values], nulls)
    if form == INDICES:
        return _resolved(found, parts, first, last, rows, validity, kind)
    wide = is_wide(kind)
    offsets, content = allocate((rows + 1) * (8 if wide else 4)), allocate(size)
    nulls = found.read_texts(first, last, wide, offsets, content, validity)
    return None if nulls < 0 else _with_nulls(binary_array(kind, rows, offsets, content), validity, nulls)


def _with_nulls(array: pa.Array, validity: pa.Buffer, nulls: int) -> pa.Array:
    if not nulls:
        return array
    return pa.Array.from_buffers(array.type, len(array), [validity, *array.buffers()[1:]], nulls)


def _resolved(
    found: ColumnParts,
    parts: Sequence[ColumnPart],
    first: int,
    last: int,
    rows: int,
    validity: pa.Buffer,
    kind: pa.DataType,
) -> pa.Array | None:
    """Return the texts to which indices point, None if a part is damaged or its dictionary is large."""
    bases, counts = np.empty(last - first, np.int64), np.empty(last - first, np.int64)
    known: dict[tuple[int, bytes], tuple[int, int]] = {}
    distinct: list[pa.Array] = []
    total = 0
    for number, (dictionary, position, size) in enumerate(found.dictionaries(first, last)):
        if size > _SMALL_DICTIONARY:
            return None
        encoding, count = dictionary
        stored = parts[first + number].mapped.slice(position, size).to_pybytes()
        key = id(dictionary), stored
        if key not in known:
            entries = encoding.entries(pa.py_buffer(stored), count, kind, "")
            known[key] = total, len(entries)
            distinct.append(entries)
            total += len(entries)
        bases[number], counts[number] = known[key]
    indices = allocate(4 * rows)
    nulls = found.read_indices(first, last, bases, counts, indices, validity)
    if nulls < 0:
        return None
    values = BinaryDictionary(pa.concat_arrays(distinct)).resolve(indices, 32, rows, validity if nulls else None)
    return _with_nulls(values, validity, nulls)


# -- descriptions --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _planner(
    kind: pa.DataType, nullable: bool, grammar: PageGrammar
) -> tuple[_Plans, Callable[[bytes, bytes], _PartPlan | None]]:
    """Return the known plans of pages with values of a type, and a function that makes one of a description."""
    plans: _Plans = {}

    def plan_of(column: bytes, page: bytes) -> _PartPlan | None:
        described = page_description(column, page)
        if described is None or grammar.of(described[0]) is not grammar:
            return None
        try:
            return _plan(grammar.parse(described[1]), kind, nullable)
        except (CodecError, CorruptFileError, UnsupportedError):
            return None

    return plans, plan_of


def _plan(layout: object, kind: pa.DataType, nullable: bool) -> _PartPlan | None:
    if isinstance(layout, FullZipLayout) and layout.num_items >= _COPIED_ROWS:
        return None
    if not isinstance(layout, FullZipLayout | MiniBlockLayout):
        return None
    rows = layout.num_items
    if is_binary_like(kind):
        return _text_plan(layout, nullable) if isinstance(layout, MiniBlockLayout) else None
    plan = plan_of_layout(layout, kind, rows, nullable)
    return None if plan is None else (rows, VALUES, None, plan)


def _text_plan(layout: MiniBlockLayout, nullable: bool) -> _PartPlan | None:
    encoding = layout.values
    is_plain, levels = levels_of(layout, nullable)
    if (
        not is_plain
        or layout.rep is not None
        or layout.indexed
        or encoding.inner is not encoding
        or layout.num_buffers != encoding.num_buffers
    ):
        return None
    rest = layout.num_buffers, layout.large, sum(encoding.least_bits), levels, None
    if layout.dictionary is not None:
        codec, bits = encoding.chunk_codec("")
        return layout.num_items, INDICES, (layout.dictionary, layout.dictionary_size), (codec, bits, bits, *rest)
    if not encoding.is_text:
        return None
    wide, symbols = encoding.text_codec("")
    if symbols is not None:
        return None  # each page has its own symbols
    return layout.num_items, WIDE_TEXTS if wide else TEXTS, None, (miniblock_values.FLAT, 8, 8, *rest)
