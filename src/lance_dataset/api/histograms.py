"""Small histograms of columns in HTML, from a bounded number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_dataset.errors import LanceError
from lance_dataset.read.take import take_rows

if TYPE_CHECKING:
    from lance_dataset.read.snapshot import Snapshot

__all__ = ["histograms"]

#: Rows that are read, in runs, and columns.
_RUNS, _RUN_ROWS, _MOST_COLUMNS, _BARS = 16, 64, 24, 20
_WIDTH, _HEIGHT = 100, 18


def histograms(snapshot: Snapshot) -> Mapping[str, str]:
    """Return small histograms of the first columns of numbers, times and truth values, by name.

    At most 1,024 rows are read, and nothing in remote stores, where each request takes long. What cannot be read has no
    histogram: showing a dataset must not raise.
    """
    rows = snapshot.manifest.num_rows
    names = [
        field.name for field in snapshot.manifest.schema.arrow if _is_countable(field.type) and "`" not in field.name
    ]
    if not rows or not names or snapshot.store.is_remote:
        return {}
    try:
        projection = snapshot.projection([f"`{name}`" for name in names[:_MOST_COLUMNS]])
        found = take_rows(snapshot.reader, _sampled(rows), projection, snapshot.scanned_schema)
    except (LanceError, OSError):
        return {}
    drawn = {name: _drawn(column) for name, column in zip(found.schema.names, found.columns, strict=True)}
    return {name: text for name, text in drawn.items() if text}


def _is_countable(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_time(kind)
        or pa.types.is_duration(kind)
    )


def _sampled(rows: int) -> np.ndarray:
    """Return the numbers of all rows, or of runs of rows at equal distances."""
    if rows <= _RUNS * _RUN_ROWS:
        return np.arange(rows, dtype=np.int64)
    starts = np.linspace(0, rows - _RUN_ROWS, _RUNS).astype(np.int64)
    return np.unique((starts[:, np.newaxis] + np.arange(_RUN_ROWS)).ravel())


def _drawn(column: pa.Array) -> str:
    """Draw the values of a column; nothing if there are none."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    numbers = column.drop_null().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return ""
    low, high = float(numbers.min()), float(numbers.max())
    if not np.isfinite(high - low):
        return ""
    distinct = min(_BARS, int(high - low) + 1) if np.all(numbers == np.floor(numbers)) else _BARS
    counts, _ = np.histogram(numbers, max(distinct, 1), (low, high if high > low else low + 1))
    bars = _bars((_HEIGHT * counts / counts.max()).tolist())
    ends = pa.array([low, high]).cast(column.type, safe=False)
    shown = ends.cast(kind) if pa.types.is_temporal(kind) else ends
    texts = [str(each) for each in shown.cast(pa.string()).to_pylist()] if shown.type != pa.float16() else [low, high]
    title = escape(f"{texts[0]} to {texts[1]}, {len(column):,} rows, {column.null_count:,} nulls")
    return f"<svg width='{_WIDTH}' height='{_HEIGHT}' role='img' fill='#5b87ab'><title>{title}</title>{bars}</svg>"


def _bars(heights: Sequence[float]) -> str:
    width = _WIDTH / len(heights)
    wide = max(width - 1, 0.5)
    return "".join(
        f"<rect x='{place * width:.1f}' y='{_HEIGHT - tall:.1f}' width='{wide:.1f}' height='{tall:.1f}'/>"
        for place, tall in enumerate(heights)
        if tall
    )
