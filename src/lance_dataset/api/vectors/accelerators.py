"""Steps of building a vector index that PyTorch does on any device, one by one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lance_dataset.api.dataset.dataset import LanceDataset
from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.index.vector.training.devices import device_of

__all__ = [
    "compute_partitions",
    "compute_pq_codes",
    "model_of_centroids",
    "one_pass_assign_ivf_pq_on_accelerator",
    "one_pass_train_ivf_pq_on_accelerator",
    "train_ivf_centroids_on_accelerator",
    "train_pq_codebook_on_accelerator",
]

#: Residuals that codewords are trained with in one pass.
_SAMPLE = 256 * 256


def train_ivf_centroids_on_accelerator(
    dataset: LanceDataset,
    column: str,
    k: int,
    metric_type: str,
    accelerator: object,
    batch_size: int = 40960,
    *,
    sample_rate: int = 256,
    max_iters: int = 50,
    filter_nan: bool = True,
) -> tuple[NDArray[np.float32], Any]:
    """Train the centroids of partitions with PyTorch.

    Parameters
    ----------
    dataset, column
        Dataset, and its column of vectors.
    k
        Number of partitions.
    metric_type
        ``l2`` (or ``euclidean``), ``cosine`` or ``dot``.
    accelerator
        ``cuda``, ``mps`` or a `torch.device`; None for the best one that there is.
    batch_size
        Maximum number of rows that are read and computed together.
    sample_rate
        Number of vectors for a partition; they are chosen at random.
    max_iters
        Maximum number of passes over them.
    filter_nan
        Leave out null vectors before the sample is drawn. They belong to no partition, nor do vectors with NaN.

    Returns
    -------
    centroids : ndarray of float32
        Centroids ``[k, dimension]``.
    kmeans : lance_dataset.torch.kmeans.KMeans
        The same as a model, for `compute_partitions`.

    Raises
    ------
    ValueError
        A parameter is out of range, or there are fewer vectors than partitions.
    TypeError
        The column has no vectors.
    UnsupportedError
        PyTorch is not installed, or has no such device.
    """
    trained: tuple[NDArray[np.float32], Any] = _torch().trained_centroids(
        *(dataset, column, _positive("k", k), metric_type, device_of(accelerator)),
        *(_positive("batch_size", batch_size), _positive("sample_rate", sample_rate)),
        *(_positive("max_iters", max_iters), bool(filter_nan)),
    )
    return trained


def train_pq_codebook_on_accelerator(
    dataset: LanceDataset | str | os.PathLike[str],
    metric_type: str,
    accelerator: object,
    num_sub_vectors: int,
    batch_size: int = 40960,
    dtype: DTypeLike = np.float32,
) -> tuple[NDArray[Any], list[Any]]:
    """Train the codewords of product quantization with PyTorch.

    Parameters
    ----------
    dataset
        Residuals, as `compute_partitions` writes them with `num_sub_vectors`, or their location.
    metric_type, accelerator, batch_size
        See `train_ivf_centroids_on_accelerator`.
    num_sub_vectors
        Number of parts of a vector.
    dtype
        Type of the codewords that are returned.

    Returns
    -------
    codewords : ndarray
        Codewords ``[num_sub_vectors, 256, dimension / num_sub_vectors]``.
    models : list of lance_dataset.torch.kmeans.KMeans
        The same as models, for `compute_pq_codes`.

    Raises
    ------
    ValueError
        A parameter is out of range, or there are fewer than 256 residuals.
    UnsupportedError
        PyTorch is not installed, or has no such device.
    """
    trained: tuple[NDArray[Any], list[Any]] = _torch().trained_codewords(
        *(dataset, metric_type, device_of(accelerator), _positive("num_sub_vectors", num_sub_vectors)),
        *(_positive("batch_size", batch_size), dtype),
    )
    return trained


def compute_partitions(
    dataset: LanceDataset,
    column: str,
    kmeans: Any,
    batch_size: int = 40960,
    dst_dataset_uri: str | os.PathLike[str] | None = None,
    allow_cuda_tf32: bool = True,
    num_sub_vectors: int | None = None,
    filter_nan: bool = True,
    sample_size: int | None = None,
) -> str:
    """Find the partition of each vector with PyTorch, and write them to a new dataset.

    It has the columns ``row_id`` and ``partition``. Null vectors and those with NaN are left out.

    Parameters
    ----------
    dataset, column, batch_size, filter_nan
        See `train_ivf_centroids_on_accelerator`.
    kmeans
        The model that it returns.
    dst_dataset_uri
        Path or URI of the new dataset; None for a new temporary folder, which the caller removes.
    allow_cuda_tf32
        True to let CUDA multiply matrices with fewer digits.
    num_sub_vectors
        Number of parts of residuals (vectors without their centroid), which are written, too, as the columns
        ``__residual_subvec_1`` and so on; None to write none.
    sample_size
        Number of vectors, the first ones of the dataset; None for all.

    Returns
    -------
    str
        Path or URI of the new dataset.

    Raises
    ------
    ValueError
        A parameter is out of range or does not fit the column, or the model is not trained.
    TypeError
        The column has no vectors.
    OSError
        There is already a dataset (an `AlreadyExistsError`).
    UnsupportedError
        PyTorch is not installed.
    """
    _check_models([kmeans])
    parts = None if num_sub_vectors is None else _positive("num_sub_vectors", num_sub_vectors)
    limit = None if sample_size is None else _positive("sample_size", sample_size)
    written: str = _torch().written_partitions(
        *(dataset, column, kmeans, _positive("batch_size", batch_size), dst_dataset_uri),
        *(allow_cuda_tf32, parts, bool(filter_nan), limit),
    )
    return written


def compute_pq_codes(
    dataset: LanceDataset,
    kmeans_list: Sequence[Any],
    batch_size: int = 40960,
    dst_dataset_uri: str | os.PathLike[str] | None = None,
    allow_cuda_tf32: bool = True,
) -> tuple[str | Path, list[str]]:
    """Compute the codes of residuals with PyTorch, and write them to a new dataset of legacy files.

    It has the columns ``row_id``, ``__ivf_part_id`` and ``__pq_code``.

    Parameters
    ----------
    dataset
        Residuals, as `compute_partitions` writes them.
    kmeans_list
        Models of the codewords, one for each part of a vector.
    batch_size, dst_dataset_uri, allow_cuda_tf32
        See `compute_partitions`.

    Returns
    -------
    place : str or Path
        Place of the new dataset.
    files : list of str
        Names of its data files.

    Raises
    ------
    ValueError
        A parameter is out of range, or a model is not trained.
    OSError
        There is already a dataset (an `AlreadyExistsError`).
    UnsupportedError
        PyTorch is not installed.
    """
    _check_models(kmeans_list)
    written: tuple[str | Path, list[str]] = _torch().codes_of_residuals(
        dataset, kmeans_list, _positive("batch_size", batch_size), dst_dataset_uri, allow_cuda_tf32
    )
    return written


def one_pass_train_ivf_pq_on_accelerator(
    dataset: LanceDataset,
    column: str,
    k: int,
    metric_type: str,
    accelerator: object,
    num_sub_vectors: int,
    batch_size: int = 40960,
    *,
    sample_rate: int = 256,
    max_iters: int = 50,
    filter_nan: bool = True,
) -> tuple[NDArray[np.float32], Any, NDArray[Any], list[Any]]:
    """Train centroids, and codewords with the residuals of the first 65,536 vectors.

    Parameters
    ----------
    dataset, column, k, metric_type, accelerator, batch_size, sample_rate, max_iters, filter_nan
        See `train_ivf_centroids_on_accelerator`.
    num_sub_vectors
        Number of parts of a vector.

    Returns
    -------
    centroids, kmeans
        See `train_ivf_centroids_on_accelerator`.
    codewords, models
        See `train_pq_codebook_on_accelerator`.
    """
    from tempfile import TemporaryDirectory

    centroids, kmeans = train_ivf_centroids_on_accelerator(
        *(dataset, column, k, metric_type, accelerator, batch_size),
        sample_rate=sample_rate,
        max_iters=max_iters,
        filter_nan=filter_nan,
    )
    with TemporaryDirectory() as folder:
        place = compute_partitions(
            *(dataset, column, kmeans, batch_size, Path(folder) / "residuals"),
            num_sub_vectors=num_sub_vectors,
            filter_nan=filter_nan,
            sample_size=_SAMPLE,
        )
        codewords, models = train_pq_codebook_on_accelerator(
            place, metric_type, accelerator, num_sub_vectors, batch_size
        )
    return centroids, kmeans, codewords, models


def one_pass_assign_ivf_pq_on_accelerator(
    dataset: LanceDataset,
    column: str,
    metric_type: str,
    accelerator: object,
    ivf_kmeans: Any,
    pq_kmeans_list: Sequence[Any],
    dst_dataset_uri: str | os.PathLike[str] | None = None,
    batch_size: int = 40960,
    *,
    filter_nan: bool = True,
    allow_cuda_tf32: bool = True,
) -> tuple[str | Path, list[str]]:
    """Compute partitions and codes of all vectors in one pass, and write them as `compute_pq_codes` does.

    Parameters
    ----------
    dataset, column, metric_type, accelerator, filter_nan
        See `train_ivf_centroids_on_accelerator`. The models compute on the devices where they are.
    ivf_kmeans, pq_kmeans_list
        Models of the centroids and of the codewords.
    dst_dataset_uri, batch_size, allow_cuda_tf32
        See `compute_partitions`.

    Returns
    -------
    place, files
        See `compute_pq_codes`.
    """
    _check_models([ivf_kmeans, *pq_kmeans_list])
    written: tuple[str | Path, list[str]] = _torch().coded(
        *(dataset, column, metric_type, device_of(accelerator), ivf_kmeans, pq_kmeans_list, dst_dataset_uri),
        *(_positive("batch_size", batch_size), bool(filter_nan), allow_cuda_tf32),
    )
    return written


def model_of_centroids(centroids: NDArray[Any], metric_type: str, accelerator: object) -> Any:
    """Return a model of centroids that there are, for `compute_partitions`."""
    return _torch().model(centroids, metric_type, device_of(accelerator))


def _torch() -> Any:
    """Return the module that computes; it is above this one, as it is built on the public face, so its name finds it.

    Raises
    ------
    UnsupportedError
        PyTorch is not installed.
    """
    return import_module("lance_dataset.torch.accelerators")


def _positive(name: str, value: object) -> int:
    number = checked_integer(name, value, bits=63)
    if not number:
        raise InvalidInputError(f"{name} must be positive, not 0")
    return number


def _check_models(models: Sequence[Any]) -> None:
    if not models:
        raise InvalidInputError("there are no models of codewords")
    for model in models:
        if not hasattr(model, "centroids") or not hasattr(model, "transform"):
            raise TypeError(f"models must be lance_dataset.torch.kmeans.KMeans, not {type(model).__name__}")
