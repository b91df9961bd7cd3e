"""B-tree indices: all values in order with the addresses of their rows, and the bounds of each page of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.types.schema import Schema

__all__ = [
    "DEFAULT_PAGE_ROWS",
    "PAGE_DATA",
    "PAGE_LOOKUP",
    "PageBounds",
    "open_lookup",
    "open_page_data",
    "page_rows",
    "remap",
    "write_lookup",
]

#: Columns: values in ascending order with nulls first, row ids.
PAGE_DATA: Final = "page_data.lance"
#: Columns, one row for each page: first value, last value, number of nulls, page number.
PAGE_LOOKUP: Final = "page_lookup.lance"
#: Rows of a page if the file does not say.
DEFAULT_PAGE_ROWS: Final = 4096

#: Names and nullability of the columns; old releases use other names in the same order.
_DATA_COLUMNS: Final = (("values", True), ("ids", False))
_LOOKUP_COLUMNS: Final = (("min", True), ("max", True), ("null_count", False), ("page_idx", False))
_PAGE_ROWS = "batch_size"
_PARTITIONED = "range_partitioned"
_PAGES_OF_PARTS = "page_num_per_range_partition"
_PART_DATA = "part_{}_page_data.lance"


def page_rows(lookup: IndexTable) -> int:
    """Return the number of rows of every page but the last.

    Raises
    ------
    CorruptFileError
        The file states something other than a positive number.
    """
    text = lookup.metadata.get(_PAGE_ROWS, str(DEFAULT_PAGE_ROWS))
    rows = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    if rows < 1:
        raise lookup.corrupt(f"{_PAGE_ROWS} is {text!r}, not a number of rows")
    return rows


def open_page_data(folder: IndexFolder, lookup: IndexTable) -> list[IndexTable]:
    """Open the files with the values in order: one file, or several with a range of values each.

    Raises
    ------
    CorruptFileError
        A file has the wrong columns, or `lookup` does not name the files.
    MissingFileError
        A file does not exist.
    """
    if lookup.metadata.get(_PARTITIONED, "false") != "true":
        files = [folder.open(PAGE_DATA)]
    else:
        files = [folder.open(_PART_DATA.format(part)) for part in _parts(lookup)]
    kind = _value_type(lookup)
    for file in files:
        if (kinds := _types(file, 2)) != [kind, pa.uint64()]:
            raise file.corrupt(f"has columns of the types {kinds}, not {kind} and uint64")
    return files


def open_lookup(folder: IndexFolder) -> IndexTable:
    """Open the file with the bounds of the pages.

    Raises
    ------
    CorruptFileError
        It has the wrong columns.
    MissingFileError
        It does not exist.
    """
    lookup = folder.open(PAGE_LOOKUP)
    _value_type(lookup)
    return lookup


def _value_type(lookup: IndexTable) -> pa.DataType:
    """Return the type of the bounds; raise CorruptFileError if the file has other columns."""
    bounds = _types(lookup, 4)
    if bounds[1:] != [bounds[0], pa.uint32(), pa.uint32()]:
        raise lookup.corrupt(f"has columns of the types {bounds}")
    return bounds[0]


def _parts(lookup: IndexTable) -> list[int]:
    """Return the ids of the files of an index that consists of several files."""
    text = lookup.metadata.get(_PAGES_OF_PARTS, "")
    try:
        pages = parse_json(text)
        parts = [part for part, _ in pages]
    except (ValueError, TypeError, RecursionError) as error:
        raise lookup.corrupt(f"{_PAGES_OF_PARTS} is not an array of pairs: {error}") from error
    if not all(isinstance(part, int) and 0 <= part < 1 << 64 for part in parts) or parts != sorted(set(parts)):
        raise lookup.corrupt(f"{_PAGES_OF_PARTS} does not name parts in order: {text[:100]}")
    if not parts:
        raise lookup.corrupt(f"{_PAGES_OF_PARTS} names no part")
    return parts


def _types(table: IndexTable, columns: int) -> list[pa.DataType]:
    """Return the types of the columns, whose names differ between releases."""
    kinds = [field.storage_type for field in table.schema.fields]
    if len(kinds) != columns:
        raise table.corrupt(f"has {len(kinds)} columns, not {columns}")
    return kinds


class PageBounds:
    """Computes the bounds of pages from values added in portions of any size.

    Parameters
    ----------
    kind
        Type of the values.
    rows_per_page
        Rows of every page but the last.
    """

    def __init__(self, kind: pa.DataType, rows_per_page: int) -> None:
        self._rows_per_page = rows_per_page
        self._firsts = [pa.array([], kind)]
        self._lasts = [pa.array([], kind)]
        self._nulls = [np.empty((2, 0), np.int64)]
        self._rows = 0
        self._last: pa.Array | None = None

    def add(self, values: pa.Array) -> None:
        """Add the next values, in order."""
        if not len(values):
            return
        size, start = self._rows_per_page, self._rows
        self._firsts.append(values.take(pa.array(np.arange(-start % size, len(values), size))))
        self._lasts.append(values.take(pa.array(np.arange((size - 1 - start) % size, len(values), size))))
        if values.null_count:
            nulls = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
            self._nulls.append(np.array(np.unique((nulls + start) // size, return_counts=True)))
        self._rows += len(values)
        self._last = values.take(pa.array([len(values) - 1]))

    def finish(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return one row for each page: first value, last value, number of nulls, page number."""
        if self._last is not None and self._rows % self._rows_per_page:
            self._lasts.append(self._last)
        firsts, lasts = pa.concat_arrays(self._firsts), pa.concat_arrays(self._lasts)
        nulls: NDArray[np.uint32] = np.zeros(len(firsts), np.uint32)
        pages, counts = np.concatenate(self._nulls, axis=1)
        np.add.at(nulls, pages, counts.astype(np.uint32))
        numbers = pa.array(np.arange(len(firsts), dtype=np.uint32))
        return pa.RecordBatch.from_arrays([firsts, lasts, pa.array(nulls), numbers], schema=schema)


def remap(source: IndexFolder, target: NewIndexFolder, moved: Relocation, index: IndexMetadata) -> None:
    """Write the index with the new addresses of its rows; values stay in order and are cut into new pages.

    Values from several files go into one file.
    """
    lookup = source.open(PAGE_LOOKUP)
    files = open_page_data(source, lookup)
    rows = page_rows(lookup)
    bounds = PageBounds(lookup.schema.fields[0].storage_type, rows)
    schema = _named(files[0].schema, _DATA_COLUMNS)
    batches = _moved(files, moved, bounds, schema.storage_arrow)
    target.write(PAGE_DATA, schema, files[0].written_version, batches)
    schema = _named(lookup.schema, _LOOKUP_COLUMNS)
    _write_lookup(target, bounds, schema, lookup.written_version, rows)


def write_lookup(target: NewIndexFolder, bounds: PageBounds, kind: pa.DataType, rows: int) -> None:
    """Write the bounds of the pages of a new index.

    Parameters
    ----------
    target
        Folder of the index.
    bounds
        The bounds.
    kind
        Type of the values.
    rows
        Rows of a page.
    """
    types = (kind, kind, pa.uint32(), pa.uint32())
    fields = [pa.field(name, each, nullable) for (name, nullable), each in zip(_LOOKUP_COLUMNS, types, strict=True)]
    _write_lookup(target, bounds, Schema.from_arrow(pa.schema(fields)), WRITTEN_VERSION, rows)


def _write_lookup(target: NewIndexFolder, bounds: PageBounds, schema: Schema, version: str, rows: int) -> None:
    batch = bounds.finish(schema.storage_arrow)
    metadata = {_PAGE_ROWS: str(rows), _PARTITIONED: "false"}
    target.write(PAGE_LOOKUP, schema, version, [batch], metadata)


def _named(schema: Schema, columns: tuple[tuple[str, bool], ...]) -> Schema:
    fields = zip(schema.fields, columns, strict=True)
    return Schema(tuple(replace(field, name=name, nullable=nullable) for field, (name, nullable) in fields))


def _moved(
    files: list[IndexTable], moved: Relocation, bounds: PageBounds, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for file in files:
        for batch in file.batches():
            values, ids = batch.columns
            if ids.null_count:
                raise file.corrupt("a value has no row")
            addresses, gone = moved.locate(ids.to_numpy(zero_copy_only=False))
            left = pa.RecordBatch.from_arrays([values, pa.array(addresses)], schema=schema)
            if gone.any():
                left = left.filter(pa.array(~gone))
            bounds.add(left.column(0))
            yield left
