"""Options of a scan: their names, and the checks of their values that do not depend on the dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Literal, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow.compute as pc

from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError, OutOfRangeError, UnsupportedError, nearest_name_hint
from lance_dataset.late_dataclass import dataclass
from lance_dataset.memory import checked_limit
from lance_dataset.scan.nearest_query import NearestQuery, VectorSearchQuery, query_of
from lance_dataset.scan.queries import MinHashQuery
from lance_dataset.scan.text_queries import FullTextQuery, PlainText

__all__ = [
    "OPTIONS",
    "BlobHandling",
    "ColumnOrdering",
    "Columns",
    "Condition",
    "SearchFilter",
    "check_arrow_options",
    "checked_option",
]

BlobHandling: TypeAlias = Literal["all_binary", "all_descriptions", "blobs_descriptions"]
Columns: TypeAlias = "Sequence[str] | Mapping[str, str] | None"
Condition: TypeAlias = "str | pc.Expression | FullTextQuery | VectorSearchQuery | Mapping[str, object]"

#: Tuning options of pyarrow datasets, which other libraries pass.
_ARROW_OPTIONS = frozenset({"use_threads", "memory_pool", "fragment_scan_options", "cache_metadata"})
_BLOB_HANDLINGS = ("all_binary", "all_descriptions", "blobs_descriptions")
_LARGEST = (1 << 63) - 1


@dataclass
class ColumnOrdering:
    """A sort key of a scan.

    Parameters
    ----------
    column_name
        Column to sort by; a dotted name means a field inside structs.
    ascending
        Sort the smallest values first.
    nulls_first
        Sort nulls before all values instead of after them.
    """

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


@dataclass(frozen=True)
class SearchFilter:
    """A filter of a search that is another search.

    Attributes
    ----------
    search
        The other search.
    expression
        A condition of the rows, too; None without one.
    """

    search: FullTextQuery | NearestQuery
    expression: str | pc.Expression | None = None


def checked_option(name: str, value: Any) -> Any:
    """Check the value of an option and return it normalized.

    Raises
    ------
    InvalidInputError
        The option does not exist, or the value is never valid for it.
    TypeError
        Values of this type are never valid for the option.
    UnsupportedError
        The option needs a feature that this release does not have.
    """
    check = OPTIONS.get(name)
    if check is None:
        raise InvalidInputError(f"Unknown option {name}{nearest_name_hint(name, sorted(OPTIONS))}")
    return None if value is None else check(name, value)


def check_arrow_options(options: Mapping[str, Any]) -> None:
    """Raise TypeError for options that are neither ours nor those of pyarrow datasets."""
    for name in options:
        if name not in _ARROW_OPTIONS:
            raise TypeError(f"unknown scan option {name!r}{nearest_name_hint(name, [*OPTIONS, 'progress'])}")


# -- checks ------------------------------------------------------------------------------------------------------


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def _count(name: str, value: Any) -> int:
    check_count(name, value)
    if value > _LARGEST:
        raise OutOfRangeError(f"{name} must be less than 2**63, got {value}")
    return int(value)


def _positive_count(name: str, value: Any) -> int:
    check_count(name, value)
    if value < 1:
        raise InvalidInputError(f"{name} must be greater than 0")
    return _count(name, value)


def _memory_limit(name: str, value: Any) -> int:
    return checked_limit(_count(name, value), name)


def _batch_size(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"batch_size must be an integer, not {type(value).__name__}")
    if not 1 <= value < 1 << 32:
        raise OutOfRangeError(f"batch_size must be between 1 and 4294967295, got {value}")
    return int(value)


def _columns(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return list(value)
    if isinstance(value, Mapping):
        for output, expression in value.items():
            if not isinstance(output, str) or not isinstance(expression, str):
                raise TypeError(f"columns maps names to SQL expressions, not {output!r} to {expression!r}")
        return dict(value)
    if isinstance(value, str | bytes | Set) or not isinstance(value, Iterable):
        raise TypeError(f"columns must be a list of names or a mapping of names to expressions, not {value!r}")
    return list(value)


def _filter(name: str, value: Any) -> Any:
    """Check a filter: text, an expression, a search, or a dictionary of both kinds of filter."""
    if isinstance(value, str):
        return value
    if isinstance(value, FullTextQuery):
        return SearchFilter(value)
    if isinstance(value, VectorSearchQuery):
        return SearchFilter(query_of(value))
    if not isinstance(value, Mapping):
        if not isinstance(value, pc.Expression):
            raise TypeError(f"A filter is a string or a pyarrow expression, not {type(value).__name__}")
        return value
    known = ("expr_filter", "search_filter")
    for key in value:
        if key not in known:
            raise InvalidInputError(f"A filter has no part {key!r}{nearest_name_hint(str(key), known)}")
    inner, search = value.get("expr_filter"), value.get("search_filter")
    if inner is not None and not isinstance(inner, str | pc.Expression):
        raise TypeError(f"an expr_filter is a string or a pyarrow expression, not {type(inner).__name__}")
    if search is None:
        return inner
    if not isinstance(search, FullTextQuery | VectorSearchQuery):
        raise TypeError(f"a search_filter is a full-text query or a VectorSearchQuery, not {type(search).__name__}")
    return SearchFilter(search if isinstance(search, FullTextQuery) else query_of(search), inner)


def _fragments(name: str, value: Any) -> tuple[int, ...]:
    """Return ids, which the caller takes from handles."""
    return tuple(value)


def _orderings(name: str, value: Any) -> list[Any]:
    if isinstance(value, str):
        raise InvalidInputError(f"order_by takes a list, such as [{value!r}]")
    if not isinstance(value, Iterable):
        raise TypeError(f"order_by takes a list of names and ColumnOrdering, not {type(value).__name__}")
    keys = list(value)
    for key in keys:
        if not isinstance(key if isinstance(key, str) else getattr(key, "column_name", None), str):
            raise TypeError(f"order_by takes names and ColumnOrdering, not {key!r}")
    return keys


def _late(name: str, value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, list | tuple) and all(isinstance(column, str) for column in value):
        return tuple(value)
    raise InvalidInputError(f"late_materialization must be a bool or a list of strings, not {value!r}")


def _blob_handling(name: str, value: Any) -> str:
    if value not in _BLOB_HANDLINGS:
        raise InvalidInputError(f"Invalid blob_handling: {value}. Expected one of: {', '.join(_BLOB_HANDLINGS)}")
    return str(value)


def _addresses(name: str, value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{name} must be bytes, as serialize_row_addrs makes them, not {type(value).__name__}")
    return bytes(value)


def _callback(name: str, value: Any) -> Any:
    if not callable(value):
        raise InvalidInputError(f"{name} must be callable, got {value!r}")
    return value


def _row_range(name: str, value: Any) -> tuple[int, int]:
    if not isinstance(value, Sequence) or len(value) != 2:
        raise InvalidInputError(f"row_range must be a pair of numbers, not {value!r}")
    return _count("row_range start", value[0]), _count("row_range stop", value[1])


def _on_index_error(name: str, value: Any) -> str:
    if value not in ("raise", "scan"):
        raise InvalidInputError(f"on_index_error must be 'raise' or 'scan', not {value!r}")
    return str(value)


def _missing(what: str) -> Callable[[str, Any], Any]:
    """Return the check of an option that needs a feature this release does not have."""

    def check(name: str, value: Any) -> Any:
        raise UnsupportedError(f"{name}: {what} is not supported by this release")

    return check


def _minhash_query(name: str, value: Any) -> MinHashQuery:
    if not isinstance(value, MinHashQuery):
        raise TypeError(f"{name} expects a MinHashQuery, got {type(value).__name__}")
    return value


def _nearest(name: str, value: Any) -> MinHashQuery | NearestQuery:
    return value if isinstance(value, MinHashQuery | NearestQuery) else NearestQuery.of(value)


def _full_text(name: str, value: Any) -> FullTextQuery | PlainText | None:
    """Check a query; like pylance, ignore numbers."""
    if isinstance(value, bool | int | float | np.number):
        return None
    if not isinstance(value, Mapping):
        return PlainText.of(value)
    for key in value:
        if key not in ("query", "columns"):
            raise TypeError(f"{name} has no part {key!r}; it has the parts 'query' and 'columns'")
    if "query" not in value:
        raise TypeError(f"{name} needs a part 'query'")
    return PlainText.of(value["query"], value.get("columns"))


def _segments(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a list of ids of segments, not {type(value).__name__}")
    ids = []
    for each in value:
        try:
            ids.append(str(UUID(str(each))))
        except ValueError:
            raise InvalidInputError(f"invalid index segment uuid {str(each)!r}") from None
    if not ids:
        raise InvalidInputError("index_segments needs at least one segment, not an empty list")
    return tuple(ids)


#: Every option with its check. A check receives the name and a value other than None.
OPTIONS: Mapping[str, Callable[[str, Any], Any]] = {
    "batch_readahead": _positive_count,
    "batch_size": _batch_size,
    "batch_size_bytes": _count,
    "blob_handling": _blob_handling,
    "columns": _columns,
    "disable_scoring_autoprojection": _switch,
    "fast_search": _switch,
    "filter": _filter,
    "fragment_readahead": _count,
    "fragments": _fragments,
    "full_text_query": _full_text,
    "include_deleted_rows": _switch,
    "index_segments": _segments,
    "io_buffer_size": _count,
    "late_materialization": _late,
    "limit": _count,
    "memory_limit": _memory_limit,
    "minhash_search": _minhash_query,
    "nearest": _nearest,
    "offset": _count,
    "on_index_error": _on_index_error,
    "order_by": _orderings,
    "prefilter": _switch,
    "row_addr_allowlist": _addresses,
    "row_addr_blocklist": _addresses,
    "row_range": _row_range,
    "scan_in_order": _switch,
    "scan_stats_callback": _callback,
    "strict_batch_size": _switch,
    "substrait_aggregate": _missing("an aggregation given as a Substrait plan"),
    "use_scalar_index": _switch,
    "use_stats": _switch,
    "with_row_address": _switch,
    "with_row_id": _switch,
}
