"""Models of vector indices, partitions and codes of vectors, computed by PyTorch on any device."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import DTypeLike, NDArray

from lance_dataset.dataset import LanceDataset, dataset, write_dataset
from lance_dataset.errors import InvalidInputError
from lance_dataset.sampler import maybe_sample
from lance_dataset.torch.kmeans import KMeans

__all__ = ["coded", "codes_of_residuals", "model", "trained_centroids", "trained_codewords", "written_partitions"]

_RESIDUALS = "__residual_subvec_"
#: Codewords of a part of a vector, and residuals that each is trained with.
_CODEWORDS, _SAMPLE_RATE = 256, 256
_METRICS = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot"}


def trained_centroids(
    source: LanceDataset,
    column: str,
    k: int,
    metric_type: str,
    device: torch.device | None,
    batch_size: int,
    sample_rate: int,
    max_iters: int,
    filter_nan: bool,
) -> tuple[NDArray[np.float32], KMeans]:
    """Train centroids with a sample of the vectors; see `lance_dataset.vector.train_ivf_centroids_on_accelerator`."""
    clusters = KMeans(k, metric=_metric(metric_type), max_iters=max_iters, device=_name(device))
    condition = _has_vector(column) if filter_nan else None
    rows = maybe_sample(source, k * sample_rate, [column], batch_size, filt=condition)
    clusters.fit([_vectors(batch.column(0)) for batch in rows])
    return _numbers(clusters), clusters


def model(centroids: NDArray[Any], metric_type: str, device: torch.device | None) -> KMeans:
    """Return a model of centroids that there are."""
    found = torch.from_numpy(np.array(centroids, np.float32))
    return KMeans(len(found), metric=_metric(metric_type), centroids=found, device=_name(device))


def trained_codewords(
    source: LanceDataset | str | os.PathLike[str],
    metric_type: str,
    device: torch.device | None,
    num_sub_vectors: int,
    batch_size: int,
    dtype: DTypeLike,
) -> tuple[NDArray[Any], list[KMeans]]:
    """Train codewords with residuals; see `lance_dataset.vector.train_pq_codebook_on_accelerator`."""
    residuals = source if isinstance(source, LanceDataset) else dataset(source)
    found = []
    for number in range(1, num_sub_vectors + 1):
        clusters = KMeans(_CODEWORDS, metric=_metric(metric_type), device=_name(device))
        rows = maybe_sample(residuals, _CODEWORDS * _SAMPLE_RATE, [f"{_RESIDUALS}{number}"], batch_size)
        clusters.fit([_vectors(batch.column(0)) for batch in rows])
        found.append(clusters)
    return np.stack([_numbers(clusters) for clusters in found]).astype(dtype), found


def written_partitions(
    source: LanceDataset,
    column: str,
    clusters: KMeans,
    batch_size: int,
    target: str | os.PathLike[str] | None,
    allow_cuda_tf32: bool,
    num_sub_vectors: int | None,
    filter_nan: bool,
    sample_size: int | None,
) -> str:
    """Write partitions of vectors, and parts of residuals; see `lance_dataset.vector.compute_partitions`."""
    centroids = _centroids(clusters)
    width = _divided(centroids.shape[1], num_sub_vectors) if num_sub_vectors else 0
    fields = [pa.field("row_id", pa.uint64()), pa.field("partition", pa.uint32())]
    parts = range(1, (num_sub_vectors or 0) + 1)
    fields += [pa.field(f"{_RESIDUALS}{number}", pa.list_(pa.float32(), width)) for number in parts]
    schema = pa.schema(fields)

    def computed(ids: NDArray[np.uint64], vectors: torch.Tensor, numbers: torch.Tensor) -> pa.RecordBatch:
        columns = [pa.array(ids, pa.uint64()), pa.array(numbers.cpu().numpy(), pa.uint32())]
        if num_sub_vectors:
            residuals = vectors.float() - centroids[numbers].float()
            columns += [_lists(part, width) for part in residuals.cpu().split(width, dim=1)]
        return pa.record_batch(columns, schema=schema)

    rows = _assigned(source, column, clusters, batch_size, filter_nan, sample_size, computed)
    with _matrix_products(allow_cuda_tf32):
        return str(_written(rows, schema, target))


def codes_of_residuals(
    source: LanceDataset,
    codewords: Sequence[KMeans],
    batch_size: int,
    target: str | os.PathLike[str] | None,
    allow_cuda_tf32: bool,
) -> tuple[str | Path, list[str]]:
    """Write codes of residuals; see `lance_dataset.vector.compute_pq_codes`."""
    names = [f"{_RESIDUALS}{number}" for number in range(1, len(codewords) + 1)]
    schema = _schema_of_codes(len(codewords))

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in source.to_batches(columns=["row_id", "partition", *names], batch_size=batch_size):
            parts = [_vectors(batch.column(name)) for name in names]
            codes = _codes(parts, codewords)
            yield pa.record_batch([batch.column(0), batch.column(1), codes], schema=schema)

    with _matrix_products(allow_cuda_tf32):
        return _with_files(rows(), schema, target)


def coded(
    source: LanceDataset,
    column: str,
    metric_type: str,
    device: torch.device | None,
    clusters: KMeans,
    codewords: Sequence[KMeans],
    target: str | os.PathLike[str] | None,
    batch_size: int,
    filter_nan: bool,
    allow_cuda_tf32: bool,
) -> tuple[str | Path, list[str]]:
    """Write partitions and codes of vectors; see `lance_dataset.vector.one_pass_assign_ivf_pq_on_accelerator`."""
    del device  # the models compute where they were trained, as in the reference
    _metric(metric_type)
    centroids = _centroids(clusters)
    width = _divided(centroids.shape[1], len(codewords))
    schema = _schema_of_codes(len(codewords))

    def computed(ids: NDArray[np.uint64], vectors: torch.Tensor, numbers: torch.Tensor) -> pa.RecordBatch:
        residuals = vectors.float() - centroids[numbers].float()
        codes = _codes(residuals.split(width, dim=1), codewords)
        partitions = pa.array(numbers.cpu().numpy(), pa.uint32())
        return pa.record_batch([pa.array(ids, pa.uint64()), partitions, codes], schema=schema)

    rows = _assigned(source, column, clusters, batch_size, filter_nan, None, computed)
    with _matrix_products(allow_cuda_tf32):
        return _with_files(rows, schema, target)


# -- vectors -----------------------------------------------------------------------------------------------------------


def _metric(name: object) -> Literal["l2", "cosine", "dot"]:
    found = _METRICS.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise InvalidInputError(f"Invalid metric_type: {name}; use one of {', '.join(_METRICS)}")
    return cast("Literal['l2', 'cosine', 'dot']", found)


def _name(device: torch.device | None) -> str | None:
    return None if device is None else str(device)


def _numbers(clusters: KMeans) -> NDArray[np.float32]:
    return _centroids(clusters).float().cpu().numpy()


def _centroids(clusters: KMeans) -> torch.Tensor:
    if clusters.centroids is None:
        raise InvalidInputError("the clusters are not trained; call fit first")
    return clusters.centroids


def _has_vector(column: str) -> str:
    path = ".".join(f"`{part}`" for part in column.split("."))
    return f"{path} IS NOT NULL"


def _divided(dimension: int, parts: int) -> int:
    if parts < 1 or dimension % parts:
        raise InvalidInputError(f"dimension ({dimension}) must be divisible by num_sub_vectors ({parts})")
    return dimension // parts


def _vectors(values: pa.Array) -> torch.Tensor:
    """Return vectors as a matrix; those that are null have NaN."""
    if not pa.types.is_fixed_size_list(values.type) or not pa.types.is_floating(values.type.value_type):
        raise TypeError(f"vectors must be fixed-size lists of floats, not {values.type}")
    flat = values.flatten()
    numbers = np.asarray(flat.fill_null(np.nan) if flat.null_count else flat)
    matrix = np.full((len(values), values.type.list_size), np.nan, numbers.dtype)
    matrix[np.asarray(values.is_valid())] = numbers.reshape(-1, values.type.list_size)
    return torch.from_numpy(matrix)


def _lists(matrix: torch.Tensor, width: int) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.contiguous().numpy().reshape(-1), pa.float32()), width)


def _assigned(
    source: LanceDataset,
    column: str,
    clusters: KMeans,
    batch_size: int,
    filter_nan: bool,
    limit: int | None,
    computed: Callable[[NDArray[np.uint64], torch.Tensor, torch.Tensor], pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield what a function makes of row ids, vectors and the numbers of their clusters. Vectors with NaN have none."""
    device = _centroids(clusters).device
    condition = _has_vector(column) if filter_nan else None
    scan = source.to_batches([column], condition, with_row_id=True, batch_size=batch_size, limit=limit)
    for batch in scan:
        vectors = _vectors(batch.column(0)).to(device)
        numbers = clusters.transform(vectors)
        known = numbers >= 0
        ids = batch.column("_rowid").to_numpy()[known.cpu().numpy()]
        yield computed(ids, vectors[known], numbers[known])


def _codes(parts: Sequence[torch.Tensor], codewords: Sequence[KMeans]) -> pa.FixedSizeListArray:
    numbers = [
        clusters.transform(part.to(_centroids(clusters).device)).cpu()
        for part, clusters in zip(parts, codewords, strict=True)
    ]
    stacked = torch.stack(numbers, dim=1).to(torch.uint8).numpy().reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(stacked, pa.uint8()), len(codewords))


@contextmanager
def _matrix_products(allow_cuda_tf32: bool) -> Generator[None]:
    """Let CUDA multiply matrices with fewer digits, or not."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = bool(allow_cuda_tf32)
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


# -- datasets ----------------------------------------------------------------------------------------------------------


def _schema_of_codes(parts: int) -> pa.Schema:
    return pa.schema(
        [
            pa.field("row_id", pa.uint64()),
            pa.field("__ivf_part_id", pa.uint32()),
            pa.field("__pq_code", pa.list_(pa.uint8(), parts)),
        ]
    )


def _written(
    rows: Iterator[pa.RecordBatch], schema: pa.Schema, target: str | os.PathLike[str] | None, version: str | None = None
) -> str | os.PathLike[str]:
    place = tempfile.mkdtemp() if target is None else target
    write_dataset(rows, place, schema, data_storage_version=version)
    return place


def _with_files(
    rows: Iterator[pa.RecordBatch], schema: pa.Schema, target: str | os.PathLike[str] | None
) -> tuple[str | Path, list[str]]:
    """Write codes in legacy files, which the reference shuffles, and return their names with the place."""
    place = _written(rows, schema, target, "legacy")
    files = [file.path for fragment in dataset(place).get_fragments() for file in fragment.data_files()]
    return Path(place) if isinstance(place, PurePath) else str(place), files
