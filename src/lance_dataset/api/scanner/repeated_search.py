"""Vector searches that differ from an earlier one only in the vector: their options are not resolved again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import pyarrow as pa

from lance_dataset.api.scanner.nearest_scanner import NearestScanner
from lance_dataset.api.scanner.scanner import LanceScanner
from lance_dataset.file.extensions import with_extensions
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.nearest.rows import NearestRequest, nearest_rows
from lance_dataset.scan.nearest.search import VectorSearch
from lance_dataset.scan.scored_rows import taken_table

__all__ = ["found_table"]

_REMEMBERED = 32
#: Options that may be given without resolving them for each search: filters, sets of rows and callbacks are not.
_PLAIN = frozenset(
    {
        *("nearest", "columns", "limit", "offset", "prefilter", "with_row_id", "with_row_address", "fast_search"),
        *("use_scalar_index", "disable_scoring_autoprojection"),
    }
)


class _Searches:
    """Resolved searches of a version, by their options. Its reader keeps them."""

    nbytes = 0

    def __init__(self) -> None:
        self._requests: dict[Hashable, NearestRequest] = {}

    def find(self, key: Hashable) -> NearestRequest | None:
        """Return a search; None if it is not known."""
        return self._requests.get(key)

    def keep(self, key: Hashable, request: NearestRequest) -> None:
        """Keep a search, and forget the others if there are too many."""
        if len(self._requests) >= _REMEMBERED:
            self._requests = {}
        self._requests[key] = request


def found_table(snapshot: Snapshot, options: Mapping[str, Any], scanner: Callable[[], LanceScanner]) -> pa.Table:
    """Run a search.

    Parameters
    ----------
    snapshot
        Version to search.
    options
        Keywords of `LanceDataset.scanner`, as the user gave them.
    scanner
        Makes the scanner of these options.
    """
    key = None if snapshot.location.scan_options else _key(options)
    if key is None:
        return scanner().to_table()
    reader = snapshot.reader
    known = reader.companions.get(_Searches) or reader.companions.setdefault(_Searches, _Searches())
    if not isinstance(known, _Searches):
        return scanner().to_table()
    request = known.find(key)
    table = None if request is None else _run(reader, request, options["nearest"]["q"])
    if table is not None:
        return table
    made = scanner()
    if isinstance(made, NearestScanner) and made.is_repeatable:
        known.keep(key, made.request)
    return made.to_table()


def _key(options: Mapping[str, Any]) -> Hashable | None:
    """Return what a search depends on, apart from the vector; None if it must be resolved each time."""
    nearest, columns = options["nearest"], options.get("columns")
    if type(nearest) is not dict or "q" not in nearest or not _PLAIN.issuperset(options):
        return None
    if columns is not None and type(columns) is not list:
        return None
    # with types, since True, 1 and 1.0 are equal, but not all valid
    parts = [(name, type(value), value) for name, value in nearest.items() if name != "q"]
    parts += [(name, type(value), value) for name, value in options.items() if name not in ("nearest", "columns")]
    key = None if columns is None else tuple(columns), tuple(parts)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _run(reader: TableReader, request: NearestRequest, q: object) -> pa.Table | None:
    """Return the rows that are nearest to a vector; None if several are given.

    Raises
    ------
    InvalidInputError, TypeError
        The vector is not valid.
    """
    query = request.search.query.with_vectors(q)
    if query.is_batch:
        return None
    search = VectorSearch.of(query, request.search.column, request.search.metric)
    again = NearestRequest(search, request.candidates, request.wanted, request.reason, request.use)
    rows = nearest_rows(reader, again)
    return with_extensions(taken_table(reader, rows, request.wanted), request.wanted.output.user_schema)
