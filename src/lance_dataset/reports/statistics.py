"""Statistics of columns: nulls, distinct values, extremes, histograms, the most frequent values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import FieldNotFoundError
from lance_dataset.reports.cells import cell_texts
from lance_dataset.reports.columns import ColumnKind, column_kind, quoted

if TYPE_CHECKING:
    from lance_dataset import LanceDataset

__all__ = ["Bin", "ColumnStatistics", "column_statistics", "countable"]

#: Values of fixed width that are all read; of larger columns, and of other types, a sample is.
_MOST_READ = 20_000_000
_SAMPLE = 100_000
_BINS = 40
_MOST_FREQUENT = 12
_LONGEST_VALUE = 200
#: Distinct values of longer columns are not counted.
_MOST_COUNTED = 2_000_000


@dataclass(frozen=True)
class Bin:
    """Bar of a histogram, or one of the most frequent values.

    Attributes
    ----------
    low, high
        Bounds, as text and, for filters, as literals of SQL; equal for a single value.
    count
        Number of values.
    """

    low: str
    high: str
    count: int


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of a column.

    Attributes
    ----------
    column, type, kind
        Name, Arrow type, and how its values are shown.
    rows, read
        Rows that the filter selects, and how many of them were read; fewer are a random sample.
    nulls, nans, distinct
        Numbers among the rows that were read; None if they are not known.
    minimum, maximum, mean, deviation
        Extremes as text, of texts cut; mean and standard deviation of numbers.
    of
        What the histogram counts: ``values``, ``lengths``, ``bytes`` or ``norms``.
    histogram
        Bars of equal width.
    frequent
        The most frequent values.
    """

    column: str
    type: str
    kind: str
    rows: int
    read: int
    nulls: int
    nans: int | None = None
    distinct: int | None = None
    minimum: str | None = None
    maximum: str | None = None
    mean: float | None = None
    deviation: float | None = None
    of: str = "values"
    histogram: tuple[Bin, ...] = ()
    frequent: tuple[Bin, ...] = ()


def column_statistics(dataset: LanceDataset, column: str, condition: str | None = None) -> ColumnStatistics:
    """Return the statistics of a top-level column over the rows for which a condition is true.

    Raises
    ------
    FieldNotFoundError
        The dataset has no such column.
    FilterError, LanceError
        The condition is invalid, or reading failed.
    """
    if column not in dataset.schema.names:
        raise FieldNotFoundError(f"there is no column {column!r}; the columns are: {', '.join(dataset.schema.names)}")
    field = dataset.schema.field(column)
    kind = column_kind(field)
    rows = dataset.count_rows(condition)
    values = _values(dataset, field, kind, condition, rows)
    facts: dict[str, Any] = {"nulls": values.null_count}
    present = values.drop_null()
    if len(present):
        facts |= _FACTS.get(kind, _no_facts)(present)
    return ColumnStatistics(column, str(field.type), kind.value, rows, len(values), **facts)


def _values(
    dataset: LanceDataset, field: pa.Field, kind: ColumnKind, condition: str | None, rows: int
) -> pa.ChunkedArray:
    """Read all values of a column, or those of a random sample of rows."""
    fixed = kind in (ColumnKind.NUMBER, ColumnKind.TIME, ColumnKind.BOOLEAN)
    names = [quoted(field.name)]
    if rows <= (_MOST_READ if fixed else _SAMPLE):
        found = dataset.scanner(names, filter=condition).to_table()
    else:
        chosen = np.sort(np.random.default_rng(0).choice(rows, _SAMPLE, replace=False))
        if condition is not None:
            offsets = dataset.scanner(["_rowoffset"], filter=condition).to_table()["_rowoffset"].to_numpy()
            chosen = offsets[chosen]
        found = dataset.take(chosen, columns=names)
    values = found.column(0)
    if isinstance(values.type, pa.BaseExtensionType):
        values = pa.chunked_array([chunk.storage for chunk in values.chunks], values.type.storage_type)
    return values.cast(countable(values.type))


def countable(kind: pa.DataType) -> pa.DataType:
    """Return the type that Arrow's functions have kernels for."""
    if pa.types.is_dictionary(kind):
        return countable(kind.value_type)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def _no_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    return {"of": "none"}


def _number_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    numbers = present.cast(pa.float64(), safe=False).to_numpy()
    finite = numbers[np.isfinite(numbers)]
    floating = pa.types.is_floating(present.type)
    facts: dict[str, Any] = {
        "nans": int(np.isnan(numbers).sum()) if floating else None,
        "distinct": _distinct(present),
        "histogram": _histogram(finite, [_number_text(each) for each in _edges(finite)]),
        "frequent": _few(present),
    }
    if len(finite):
        facts |= {"mean": float(finite.mean()), "deviation": float(finite.std())}
    return facts | _extremes(present.filter(pc.invert(pc.is_nan(present))) if floating else present)


def _time_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    bits = present.type.bit_width
    integers = present.cast(pa.int32() if bits == 32 else pa.int64())
    numbers = integers.cast(pa.float64(), safe=False).to_numpy()
    edges = pa.array([int(each) for each in _edges(numbers)], integers.type).cast(present.type)
    return {
        "distinct": _distinct(present),
        "histogram": _histogram(numbers, cell_texts(edges, _LONGEST_VALUE).to_pylist()),
        **_extremes(integers, present.type),
    }


def _text_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    return {
        "distinct": _distinct(present),
        "frequent": _frequent(present),
        "of": "lengths",
        "histogram": _sizes(pc.utf8_length(present)),
        **_extremes(present),
    }


def _boolean_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    return {"distinct": _distinct(present), "frequent": _frequent(present)}


def _binary_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    return {"of": "bytes", "histogram": _sizes(pc.binary_length(present))}


def _list_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    return {"of": "lengths", "histogram": _sizes(pc.list_value_length(present))}


def _blob_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    if not pa.types.is_struct(present.type) or present.type.get_field_index("size") < 0:
        return {"of": "none"}
    return {"of": "bytes", "histogram": _sizes(pc.struct_field(present, "size"))}


def _vector_facts(present: pa.ChunkedArray) -> dict[str, Any]:
    size = present.type.list_size
    if size == 0:
        return {"of": "none"}
    flat = pc.list_flatten(present).cast(pa.float64(), safe=False).fill_null(math.nan).to_numpy()
    norms = np.linalg.norm(flat.reshape(-1, size), axis=1)
    finite = norms[np.isfinite(norms)]
    return {"of": "norms", "histogram": _histogram(finite, [_number_text(each) for each in _edges(finite)])}


_FACTS = {
    ColumnKind.NUMBER: _number_facts,
    ColumnKind.TIME: _time_facts,
    ColumnKind.TEXT: _text_facts,
    ColumnKind.BOOLEAN: _boolean_facts,
    ColumnKind.BINARY: _binary_facts,
    ColumnKind.LIST: _list_facts,
    ColumnKind.BLOB: _blob_facts,
    ColumnKind.VECTOR: _vector_facts,
}


def _distinct(present: pa.ChunkedArray) -> int | None:
    return pc.count_distinct(present).as_py() if len(present) <= _MOST_COUNTED else None


def _extremes(present: pa.ChunkedArray, shown_as: pa.DataType | None = None) -> dict[str, Any]:
    """Return the extremes as text; integers that stand for values of another type are shown as these."""
    if not len(present):
        return {}
    found = pc.min_max(present)
    ends = pa.array([found["min"].as_py(), found["max"].as_py()], present.type)
    low, high = cell_texts(ends if shown_as is None else ends.cast(shown_as), _LONGEST_VALUE).to_pylist()
    return {"minimum": low, "maximum": high}


def _few(present: pa.ChunkedArray) -> tuple[Bin, ...]:
    """Return the counts of values if there are only a few, as of codes and categories."""
    head = present[:10_000]
    return _frequent(present) if pc.count_distinct(head).as_py() <= _MOST_FREQUENT else ()


def _frequent(present: pa.ChunkedArray) -> tuple[Bin, ...]:
    counted = pc.value_counts(present)
    order = pc.array_sort_indices(counted.field("counts"), order="descending")
    top = counted.take(order[:_MOST_FREQUENT])
    texts = cell_texts(top.field("values"), _LONGEST_VALUE).to_pylist()
    return tuple(Bin(text, text, count) for text, count in zip(texts, top.field("counts").to_pylist(), strict=True))


def _sizes(sizes: pa.ChunkedArray) -> tuple[Bin, ...]:
    numbers = sizes.cast(pa.float64()).to_numpy()
    return _histogram(numbers, [_number_text(each) for each in _edges(numbers)])


def _edges(numbers: np.ndarray) -> np.ndarray:
    """Return the bounds of bars of equal width; whole numbers get bars of whole width."""
    if not len(numbers):
        return np.zeros(0)
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return np.array([low, high])
    if np.all(numbers == np.floor(numbers)) and high - low < 2**52:
        width = max(1.0, math.ceil((high - low + 1) / _BINS))
        return low + width * np.arange(math.ceil((high - low + 1) / width) + 1)
    return np.linspace(low, high, _BINS + 1)


def _histogram(numbers: np.ndarray, edges: Sequence[str]) -> tuple[Bin, ...]:
    bounds = _edges(numbers)
    if len(bounds) < 2:
        return ()
    if bounds[0] == bounds[-1]:
        return (Bin(edges[0], edges[-1], len(numbers)),)
    counts, _ = np.histogram(numbers, bounds)
    return tuple(Bin(edges[i], edges[i + 1], int(count)) for i, count in enumerate(counts))


def _number_text(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(float(number))
