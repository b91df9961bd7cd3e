"""Requests of queries as arguments of scans."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from lance_dataset.api.catalogs.packages import errors
from lance_dataset.api.dataset.dataset import LanceDataset
from lance_dataset.api.scanner.scanner import LanceScanner
from lance_dataset.scan import text_queries

__all__ = ["file_of", "query_scanner"]

_VECTOR = "vector"


def query_scanner(shown: LanceDataset, request: Any) -> LanceScanner:
    """Make the scanner of a query.

    Parameters
    ----------
    shown
        Handle on the table.
    request
        A ``QueryTableRequest``, or another request with its fields.
    """
    options: dict[str, Any] = {
        "columns": _columns(request.columns),
        "filter": request.filter,
        "prefilter": request.prefilter,
        "offset": request.offset,
        "with_row_id": request.with_row_id,
        "fast_search": request.fast_search,
    }
    nearest = _nearest(request)
    if nearest is not None:
        options["nearest"] = nearest
    text = _text_query(request.full_text_query)
    if text is not None:
        options["full_text_query"] = text
    options["limit"] = request.k
    return shown.scanner(**{name: value for name, value in options.items() if value is not None})


def file_of(rows: pa.Table) -> bytes:
    """Return rows as a file of Arrow's IPC format."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _columns(columns: Any) -> list[str] | dict[str, str] | None:
    if columns is None:
        return None
    if columns.column_aliases:
        return dict(columns.column_aliases)
    return None if columns.column_names is None else list(columns.column_names)


def _nearest(request: Any) -> dict[str, Any] | None:
    vector = request.vector
    single = None if vector is None else vector.single_vector
    several: Any = None if vector is None else vector.multi_vector
    if not single and not several:
        return None
    if request.k < 1:
        raise errors.InvalidInputError(f"Invalid input: k must be at least 1, got {request.k}")
    # An offset is counted after the search, so that many more rows are searched for.
    wanted: dict[str, Any] = {
        "column": request.vector_column or _VECTOR,
        "q": [float(each) for each in single] if single else [[float(each) for each in row] for row in several],
        "k": request.k + (request.offset or 0),
        "metric": request.distance_type,
        "nprobes": request.nprobes,
        "minimum_nprobes": request.minimum_nprobes,
        "maximum_nprobes": request.maximum_nprobes,
        "refine_factor": request.refine_factor,
        "ef": request.ef,
    }
    if request.bypass_vector_index:
        wanted["use_index"] = False
    if request.lower_bound is not None or request.upper_bound is not None:
        wanted["distance_range"] = (request.lower_bound, request.upper_bound)
    return {name: value for name, value in wanted.items() if value is not None}


def _text_query(query: Any) -> Any:
    if query is None:
        return None
    if query.structured_query is not None:
        return _structured(query.structured_query.query)
    plain = query.string_query
    if plain is None:
        return None
    return {"query": plain.query, "columns": list(plain.columns)} if plain.columns else plain.query


def _structured(query: Any) -> Any:
    """Convert a query tree of a request."""
    if query.match is not None:
        return _match(query.match)
    if query.phrase is not None:
        phrase = query.phrase
        return text_queries.PhraseQuery(phrase.terms, _text_column(phrase), slop=phrase.slop or 0)
    if query.boost is not None:
        boost = query.boost
        factor = 0.5 if boost.negative_boost is None else float(boost.negative_boost)
        return text_queries.BoostQuery(_structured(boost.positive), _structured(boost.negative), negative_boost=factor)
    if query.multi_match is not None:
        parts = list(query.multi_match.match_queries)
        if not parts or len({part.terms for part in parts}) > 1:
            raise errors.UnsupportedOperationError(
                "Not supported: match_queries of a multi_match must all have the same terms"
            )
        return text_queries.MultiMatchQuery(
            parts[0].terms, [_text_column(part) for part in parts], boosts=[float(part.boost or 1) for part in parts]
        )
    if query.boolean is not None:
        occurs = (
            (text_queries.Occur.MUST, query.boolean.must),
            (text_queries.Occur.MUST_NOT, query.boolean.must_not),
            (text_queries.Occur.SHOULD, query.boolean.should),
        )
        return text_queries.BooleanQuery([(occur, _structured(each)) for occur, group in occurs for each in group])
    raise errors.InvalidInputError("Invalid input: the full-text query is empty")


def _match(match: Any) -> Any:
    options = {
        "boost": None if match.boost is None else float(match.boost),
        "fuzziness": match.fuzziness,
        "max_expansions": match.max_expansions,
        "prefix_length": match.prefix_length,
        "operator": None if match.operator is None else text_queries.FullTextOperator[match.operator.upper()],
    }
    given = {name: value for name, value in options.items() if value is not None}
    return text_queries.MatchQuery(match.terms, _text_column(match), **given)


def _text_column(part: Any) -> str:
    if not part.column:
        raise errors.InvalidInputError("Invalid input: a part of a structured query names no column")
    return str(part.column)
