"""R-tree indices: boxes around geometries in Hilbert order, and boxes around each page of boxes, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.table.row_sets import ROW_SETS, layout_of_sets
from lance_dataset.types.geoarrow import BOX_BOUNDS
from lance_dataset.types.logical import EXTENSION_NAME

__all__ = [
    "BOUNDS",
    "BOX",
    "DEFAULT_PAGE_ROWS",
    "ID",
    "ITEMS",
    "NULLS",
    "NULL_ROWS",
    "PAGES",
    "PAGE_DATA",
    "PAGE_ROWS",
    "SCHEMA",
    "Boxes",
    "Level",
    "TreeShape",
    "null_set",
    "open_tree",
    "read_rows",
]

#: Boxes and what they are around: first those of geometries with the ids of their rows, then those of pages.
PAGE_DATA: Final = "page_data.lance"
#: One set of the rows with null.
NULLS: Final = "nulls.lance"
NULL_ROWS: Final = "nulls"
BOX, ID = "bbox", "id"
#: Metadata of the schema: boxes in a page, pages, geometries with a box, the box around them as JSON.
PAGE_ROWS, PAGES, ITEMS, BOUNDS = "page_size", "num_pages", "num_items", "bbox"
DEFAULT_PAGE_ROWS: Final = 4096

_BOX_TYPE: Final = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in BOX_BOUNDS])
SCHEMA: Final = pa.schema(
    [
        pa.field(BOX, _BOX_TYPE, nullable=False, metadata={EXTENSION_NAME: "geoarrow.box"}),
        pa.field(ID, pa.uint64(), nullable=False),
    ]
)

#: float64[4, n]: xmin, ymin, xmax, ymax.
Boxes = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """Boxes at the same distance from the root.

    Attributes
    ----------
    first_row, num_rows
        Rows of the boxes.
    first_page, num_pages
        Numbers of the pages that they are in.
    """

    first_row: int
    num_rows: int
    first_page: int
    num_pages: int


@dataclass(frozen=True)
class TreeShape:
    """Places of the boxes of a tree.

    Attributes
    ----------
    items
        Number of geometries.
    page_rows
        Boxes in every page of a level but the last.
    """

    items: int
    page_rows: int

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels, that of the geometries first and that of the root page last; none in an empty tree."""
        found: list[Level] = []
        row = page = 0
        rows = self.items
        while rows:
            pages = -(-rows // self.page_rows)
            found.append(Level(row, rows, page, pages))
            row, page, rows = row + rows, page + pages, pages if pages > 1 else 0
        return tuple(found)

    @property
    def num_rows(self) -> int:
        """Number of boxes on all levels."""
        return sum(level.num_rows for level in self.levels)

    @property
    def num_pages(self) -> int:
        """Number of pages on all levels."""
        return sum(level.num_pages for level in self.levels)


def open_tree(folder: IndexFolder) -> tuple[IndexTable, TreeShape]:
    """Open the file with the boxes.

    Raises
    ------
    CorruptFileError
        It has the wrong columns, or its numbers contradict each other.
    MissingFileError
        It does not exist.
    """
    table = folder.open(PAGE_DATA)
    kinds = table.column_type(BOX), table.column_type(ID)
    names = [field.name for field in kinds[0]] if pa.types.is_struct(kinds[0]) else []
    if kinds[1] != pa.uint64() or names != list(BOX_BOUNDS) or any(field.type != pa.float64() for field in kinds[0]):
        raise table.corrupt(f"has boxes of the type {kinds[0]} and ids of the type {kinds[1]}")
    shape = TreeShape(_number(table, ITEMS, None), _number(table, PAGE_ROWS, DEFAULT_PAGE_ROWS))
    if shape.page_rows < 2 or shape.items > table.num_rows:
        raise table.corrupt(f"{shape.items} items in pages of {shape.page_rows} contradict its {table.num_rows} rows")
    if shape.num_rows != table.num_rows or _number(table, PAGES, shape.num_pages) != shape.num_pages:
        raise table.corrupt(
            f"a tree of {shape.items} items in pages of {shape.page_rows} has {shape.num_rows} rows and "
            f"{shape.num_pages} pages, not {table.num_rows} and {table.metadata.get(PAGES)}"
        )
    return table, shape


def _number(table: IndexTable, key: str, default: int | None) -> int:
    text = table.metadata.get(key, "" if default is None else str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise table.corrupt(f"{key} is {text[:40]!r}, not a number")
    return int(text)


def read_rows(table: IndexTable, start: int, stop: int) -> tuple[Boxes, NDArray[np.uint64]]:
    """Return the boxes of some rows, and their ids.

    Raises
    ------
    CorruptFileError
        A value is null.
    """
    boxes, ids = table.read(start, stop, [BOX, ID]).columns
    bounds = [boxes.field(name) for name in BOX_BOUNDS]
    if boxes.null_count or ids.null_count or any(each.null_count for each in bounds):
        raise table.corrupt(f"has nulls in the rows {start} to {stop}")
    return np.stack([np.asarray(each) for each in bounds]), np.asarray(ids)


def null_set(folder: IndexFolder) -> tuple[pa.Array, bool]:
    """Return the set of rows with null, as an array of one value, and whether it has all rows of some fragment.

    Raises
    ------
    CorruptFileError
        The file does not have one set.
    MissingFileError
        It does not exist.
    """
    table = folder.open(NULLS)
    kind = table.column_type(NULL_ROWS)
    if table.num_rows != 1 or not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        raise table.corrupt(f"has {table.num_rows} rows of {kind}, not one set of rows")
    sets = table.read(columns=[NULL_ROWS]).column(0)
    if sets.null_count:
        raise table.corrupt("its set of rows is null")
    layout = layout_of_sets(sets.cast(pa.large_binary()), ROW_SETS, table.where)
    return sets, bool(layout.dense.any())
