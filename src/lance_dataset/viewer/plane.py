"""Vectors of a column as points of a plane."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.reports.columns import ColumnKind, column_kind, quoted
from lance_dataset.viewer.parameters import Parameters
from lance_dataset.viewer.previews import stream
from lance_dataset.viewer.source import Source

__all__ = ["plane"]

#: Most points by method. UMAP compares all pairs of up to 4,096 vectors, and takes minutes for more.
_MOST_POINTS = {"pca": 5_000, "umap": 4_000}
#: Vectors with fewer others have no neighborhood that UMAP could keep.
_FEWEST_NEIGHBORS, _NEIGHBORS = 4, 15
#: The threads of numba end the process if several requests use them at once.
_umap_lock = threading.Lock()


def plane(source: Source, given: Parameters) -> bytes:
    """Return places of the vectors of a sample of rows, and the numbers of these rows.

    Places are the two principal components, or those that UMAP finds, which keep neighbors together.
    """
    method = given.text("method") or "pca"
    placed = _placing(method)
    dataset = source.dataset(given.text("version"))
    field = source.column(dataset, given.integer("column"))
    if column_kind(field) is not ColumnKind.VECTOR:
        raise InvalidInputError(f"the column {field.name!r} has no vectors")
    selected = source.rows(dataset, given.text("filter"))
    total = selected.total()
    count = min(given.integer("count", 2_000, most=_MOST_POINTS[method]), total)
    chosen = np.sort(np.random.default_rng(0).choice(total, count, replace=False)) if count else np.zeros(0, np.int64)
    numbers = selected.numbers_at(chosen)
    values = dataset.take(numbers, columns=[quoted(field.name)]).column(0).combine_chunks()
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    flat = values.flatten().cast(pa.float64(), safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    vectors = flat.reshape(int(valid.sum()), -1) if valid.any() else np.zeros((0, 2))
    finite = np.isfinite(vectors).all(axis=1)
    points = placed(vectors[finite])
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
    return _scaled(centered @ axes[:, [-1, -2]])


def _by_neighbors(vectors: np.ndarray) -> np.ndarray:
    """Return the places that UMAP (McInnes, Healy, Melville 2018) finds, scaled to -1 to 1; equal in every run."""
    try:
        from umap import UMAP  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UnsupportedError(
            "a map by UMAP needs the package umap-learn, which is not installed: pip install 'lance-dataset[umap]'; "
            "principal components need no other package"
        ) from None
    if len(vectors) <= _FEWEST_NEIGHBORS:
        raise InvalidInputError(
            f"UMAP needs at least {_FEWEST_NEIGHBORS + 1} vectors, not {len(vectors)}; use principal components"
        )
    neighbors = min(_NEIGHBORS, len(vectors) - 1)
    with _umap_lock:
        # Its initialization by a spectrum needs more points than it has components.
        init = "spectral" if len(vectors) > _NEIGHBORS else "random"
        model = UMAP(n_neighbors=neighbors, init=init, random_state=0, n_jobs=1)
        points = np.asarray(model.fit_transform(vectors.astype(np.float32)), np.float64)
    return _scaled(points - (points.max(axis=0) + points.min(axis=0)) / 2)


def _scaled(points: np.ndarray) -> np.ndarray:
    largest = np.abs(points).max(axis=0)
    return points / np.where(largest == 0, 1, largest)


def _placing(method: str) -> Callable[[np.ndarray], np.ndarray]:
    known = {"pca": _principal, "umap": _by_neighbors}
    if method not in known:
        raise InvalidInputError(f"method must be one of {', '.join(known)}, not {method[:40]!r}")
    return known[method]
