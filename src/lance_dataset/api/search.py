"""Searches by text, by vector, or by both: `search`, `count_facets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_dataset.api.scanner.nearest_scanner import nearest_request
from lance_dataset.api.scanner.text_scanner import text_request
from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.extensions import with_extensions
from lance_dataset.read.snapshot import Columns, Snapshot
from lance_dataset.scan.address_sets import restricted
from lance_dataset.scan.full_text.details import TextDetails
from lance_dataset.scan.full_text.facets import facet_columns, facets
from lance_dataset.scan.full_text.rows import TextRequest, text_rows
from lance_dataset.scan.hybrid.fusion import Fusion
from lance_dataset.scan.hybrid.rows import HybridRequest, hybrid_rows
from lance_dataset.scan.nearest.rows import NearestRequest
from lance_dataset.scan.nearest.search import VectorColumn
from lance_dataset.scan.nearest_query import NearestQuery
from lance_dataset.scan.options import SearchFilter, checked_option
from lance_dataset.scan.scored_output import ScoredOutput
from lance_dataset.scan.scored_rows import ScoredRequest, taken_table
from lance_dataset.scan.text_queries import PlainText

__all__ = ["count_facets", "search"]

#: Candidates of each search: at least so many, and so many for each row to find.
_LEAST_CANDIDATES = 100
_CANDIDATES = 3
_EXCLUDED = ("nearest", "full_text_query", "minhash_search", "limit", "offset", "order_by", "include_deleted_rows")


def search(
    snapshot: Snapshot,
    text: object,
    vector: object,
    columns: Columns,
    options: Mapping[str, object],
    *,
    k: int,
    text_columns: Sequence[str] | None,
    vector_column: str | None,
    fusion: Fusion,
    candidates: int | None,
    details: TextDetails,
) -> pa.Table:
    """Search a version. See `Searching.search`.

    Parameters
    ----------
    snapshot
        The version.
    options
        Options of scans that apply to both searches.
    text, vector, columns, k, text_columns, vector_column, fusion, candidates, details
        See `Searching.search`.

    Raises
    ------
    FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError, TypeError
        See `Searching.search`.
    """
    if text is None and vector is None:
        raise InvalidInputError("search for a text, for a vector, or for both")
    if text is None and details.fields:
        raise InvalidInputError("highlight and explain_score need a text")
    check_count("k", k)
    if candidates is None:
        candidates = k if text is None or vector is None else max(_LEAST_CANDIDATES, _CANDIDATES * k)
    check_count("candidates", candidates)
    if candidates < k:
        raise InvalidInputError(f"candidates must be at least k, {k}, not {candidates}")
    base = _options(snapshot, {**options, "columns": []})
    request = HybridRequest(
        None if text is None else _text(snapshot, base, text, text_columns, candidates),
        None if vector is None else _nearest(snapshot, base, vector, vector_column, candidates),
        fusion,
        k,
        details,
    )
    rows = hybrid_rows(snapshot.reader, request)
    output = ScoredOutput.of_values(
        snapshot.scanned_schema, request.fields, _options(snapshot, {**options, "columns": columns})
    )
    table = taken_table(snapshot.reader, rows, ScoredRequest(output))
    return with_extensions(table, output.user_schema)


def count_facets(
    snapshot: Snapshot,
    text: object,
    columns: Sequence[str],
    options: Mapping[str, object],
    *,
    text_columns: Sequence[str] | None,
    most: int,
) -> dict[str, pa.Table]:
    """Count the values of columns in the rows that match a text. See `Searching.facets`.

    Parameters
    ----------
    snapshot
        The version.
    options
        Options of scans that apply to the search.
    text, columns, text_columns, most
        See `Searching.facets`.

    Raises
    ------
    FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError, TypeError
        See `Searching.facets`.
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(f"columns must be a list of names, not {columns!r}")
    check_count("most", most)
    schema, reader = snapshot.scanned_schema, snapshot.reader
    counted = facet_columns(schema, columns)
    request = _text(snapshot, _options(snapshot, {**options, "columns": []}), text, text_columns, None)
    addresses = text_rows(reader, request).addresses
    return dict(zip(columns, facets(reader, schema, addresses, counted, most), strict=True))


def _options(snapshot: Snapshot, given: Mapping[str, object]) -> dict[str, Any]:
    """Return checked options, with the defaults of the dataset."""
    defaults = {name: value for name, value in snapshot.location.scan_options.items() if name not in _EXCLUDED}
    found = {**defaults, **{name: value for name, value in given.items() if value is not None}, "prefilter": True}
    checked = {name: checked_option(name, value) for name, value in found.items()}
    if isinstance(checked.get("filter"), SearchFilter):
        raise InvalidInputError("the filter of a search is SQL text or an expression, not another search")
    return {name: value for name, value in checked.items() if value is not None}


def _text(
    snapshot: Snapshot, base: Mapping[str, Any], text: object, columns: Sequence[str] | None, limit: int | None
) -> TextRequest:
    options = base if limit is None else {**base, "limit": limit}
    request = text_request(snapshot, options, PlainText.of(text, columns))
    wanted = request.wanted
    found = restricted(snapshot.reader, request.candidates, wanted.allowed, wanted.blocked)
    return replace(request, candidates=found)


def _nearest(
    snapshot: Snapshot, base: Mapping[str, Any], vector: object, column: str | None, candidates: int
) -> NearestRequest:
    if not isinstance(vector, Mapping):
        vector = {"column": column or _vector_column(snapshot), "q": vector}
    elif column is not None and vector.get("column", column) != column:
        raise InvalidInputError(f"the vector is searched for in {vector['column']!r}, not in {column!r}")
    elif "column" not in vector:
        vector = {**vector, "column": column or _vector_column(snapshot)}
    request = nearest_request(snapshot, base, NearestQuery.of({"k": max(candidates, 1), **vector}))
    if request.search.is_batch:
        raise UnsupportedError("search takes one vector; search for each of several by itself")
    wanted = request.wanted
    found = restricted(snapshot.reader, request.candidates, wanted.allowed, wanted.blocked)
    return replace(request, candidates=found)


def _vector_column(snapshot: Snapshot) -> str:
    """Return the name of the only column of vectors."""
    found = [name for name in snapshot.scanned_schema.names if _is_searched(snapshot, name)]
    if len(found) != 1:
        raise InvalidInputError(
            f"name the column of the vector as vector_column: {', '.join(found)}"
            if found
            else "the table has no column of vectors to search"
        )
    return found[0]


def _is_searched(snapshot: Snapshot, name: str) -> bool:
    try:
        VectorColumn.of(snapshot.scanned_schema, f"`{name}`")
    except (TypeError, InvalidInputError):
        return False
    return True
