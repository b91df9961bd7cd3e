"""Vectors of a column as points of a plane."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.reports.columns import ColumnKind, column_kind, quoted
from lance_dataset.viewer.parameters import Parameters
from lance_dataset.viewer.previews import stream
from lance_dataset.viewer.source import Source

__all__ = ["plane"]

_MOST_POINTS = 5_000


def plane(source: Source, given: Parameters) -> bytes:
    """Return the two principal components of the vectors of a sample of rows, and the numbers of these rows."""
    dataset = source.dataset(given.text("version"))
    field = source.column(dataset, given.integer("column"))
    if column_kind(field) is not ColumnKind.VECTOR:
        raise InvalidInputError(f"the column {field.name!r} has no vectors")
    selected = source.rows(dataset, given.text("filter"))
    total = selected.total()
    count = min(given.integer("count", 2_000, most=_MOST_POINTS), total)
    chosen = np.sort(np.random.default_rng(0).choice(total, count, replace=False)) if count else np.zeros(0, np.int64)
    numbers = selected.numbers_at(chosen)
    values = dataset.take(numbers, columns=[quoted(field.name)]).column(0).combine_chunks()
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    flat = values.flatten().cast(pa.float64(), safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    vectors = flat.reshape(int(valid.sum()), -1) if valid.any() else np.zeros((0, 2))
    finite = np.isfinite(vectors).all(axis=1)
    points = _principal(vectors[finite])
    rows = numbers[valid][finite].astype(np.float64)
    return stream(pa.table({"x": points[:, 0], "y": points[:, 1], "row": rows}))


def _principal(vectors: np.ndarray) -> np.ndarray:
    """Return the two principal components, scaled to -1 to 1."""
    if len(vectors) == 0:
        return np.zeros((0, 2))
    centered = vectors - vectors.mean(axis=0)
    if centered.shape[1] < 2:
        centered = np.hstack([centered, np.zeros((len(centered), 2 - centered.shape[1]))])
    _, axes = np.linalg.eigh(centered.T @ centered)
    points = centered @ axes[:, [-1, -2]]
    largest = np.abs(points).max(axis=0)
    return points / np.where(largest == 0, 1, largest)
