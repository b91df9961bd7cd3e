"""`SearchShapes`: what vector searches with the same options have in common, resolved once for a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.nearest.search import VectorColumn
from lance_dataset.scan.request import Ordering, ScanRequest
from lance_dataset.scan.scored_output import ScoredOutput
from lance_dataset.types.schema import Schema

__all__ = ["SearchShape", "SearchShapes", "search_shapes", "shape_key"]

_REMEMBERED = 32
#: Options that shapes may depend on; searches with others are resolved each time.
_PLAIN = frozenset(
    {
        *("nearest", "columns", "limit", "offset", "prefilter", "with_row_id", "with_row_address", "fast_search"),
        *("batch_size", "use_scalar_index", "disable_scoring_autoprojection", "blob_handling"),
    }
)
#: Of these, the options that are applied to the rows found.
_LATER = frozenset({"nearest", "columns", "limit", "offset"})


@dataclass(frozen=True, eq=False)
class SearchShape:
    """Options of a search, resolved.

    Attributes
    ----------
    output
        Output columns.
    candidates
        Scan of the vectors.
    order_by
        Sort keys for the rows found.
    """

    output: ScoredOutput
    candidates: ScanRequest
    order_by: tuple[Ordering, ...]


class SearchShapes:
    """Shapes of the searches of a version. Its reader keeps them."""

    nbytes = 0

    def __init__(self) -> None:
        self._known: dict[Any, SearchShape] = {}
        self._columns: dict[str, VectorColumn] = {}

    def column(self, schema: Schema, name: str) -> VectorColumn:
        """Find a column of vectors. Errors are those of `VectorColumn.of`."""
        found = self._columns.get(name)
        if found is None:
            found = VectorColumn.of(schema, name)
            if len(self._columns) >= _REMEMBERED:
                self._columns = {}
            self._columns[name] = found
        return found

    def find(self, key: object) -> SearchShape | None:
        """Return the shape of a key, None if it is not known."""
        return self._known.get(key)

    def keep(self, key: object, shape: SearchShape) -> None:
        """Keep a shape, and forget the others if there are too many."""
        if len(self._known) >= _REMEMBERED:
            self._known = {}
        self._known[key] = shape


def shape_key(options: Mapping[str, Any], column: str, leading: pa.Field | None, index: object) -> object:
    """Return what the shape of a search depends on; None if it cannot be kept.

    Parameters
    ----------
    options
        Options that `checked_option` has accepted.
    column
        Name of the column of the vectors.
    leading
        See `ScoredOutput.of`.
    index
        The index that the search uses.
    """
    if not _PLAIN.issuperset(options):
        return None
    columns = options.get("columns")
    names = tuple(columns.items()) if isinstance(columns, Mapping) else None if columns is None else tuple(columns)
    others = frozenset(each for each in options.items() if each[0] not in _LATER)
    return column, isinstance(columns, Mapping), names, others, leading is None, index


def search_shapes(reader: TableReader) -> SearchShapes:
    """Return the shapes of the searches of a version."""
    found = reader.companions.get(SearchShapes) or reader.companions.setdefault(SearchShapes, SearchShapes())
    return found if isinstance(found, SearchShapes) else SearchShapes()
