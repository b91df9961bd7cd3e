"""Functions that train with PyTorch on an accelerator in the reference: refused, with what to use instead."""

from __future__ import annotations

from typing import NoReturn

from lance_dataset.errors import UnsupportedError

__all__ = [
    "compute_partitions",
    "compute_pq_codes",
    "one_pass_assign_ivf_pq_on_accelerator",
    "one_pass_train_ivf_pq_on_accelerator",
    "train_ivf_centroids_on_accelerator",
    "train_pq_codebook_on_accelerator",
]


def train_ivf_centroids_on_accelerator(
    dataset: object,
    column: str,
    k: int,
    metric_type: str,
    accelerator: object,
    batch_size: int = 40960,
    *,
    sample_rate: int = 256,
    max_iters: int = 50,
    filter_nan: bool = True,
) -> NoReturn:
    """Refuse to train centroids on an accelerator.

    The parameters are those of the reference.

    Raises
    ------
    UnsupportedError
        Always. `IndicesBuilder.train_ivf` does the same on processors.
    """
    raise _refusal("train_ivf_centroids_on_accelerator", "IndicesBuilder.train_ivf")


def train_pq_codebook_on_accelerator(
    dataset: object,
    metric_type: str,
    accelerator: object,
    num_sub_vectors: int,
    batch_size: int = 40960,
    dtype: object = None,
) -> NoReturn:
    """Refuse to train codewords on an accelerator.

    The parameters are those of the reference.

    Raises
    ------
    UnsupportedError
        Always. `IndicesBuilder.train_pq` does the same on processors.
    """
    raise _refusal("train_pq_codebook_on_accelerator", "IndicesBuilder.train_pq")


def compute_partitions(
    dataset: object,
    column: str,
    kmeans: object,
    batch_size: int = 40960,
    dst_dataset_uri: object = None,
    allow_cuda_tf32: bool = True,
    num_sub_vectors: int | None = None,
    filter_nan: bool = True,
    sample_size: int | None = None,
) -> NoReturn:
    """Refuse to assign vectors to partitions on an accelerator.

    The parameters are those of the reference.

    Raises
    ------
    UnsupportedError
        Always. `IndicesBuilder.transform_vectors` does the same on processors.
    """
    raise _refusal("compute_partitions", "IndicesBuilder.transform_vectors")


def compute_pq_codes(
    dataset: object,
    kmeans_list: object,
    batch_size: int = 40960,
    dst_dataset_uri: object = None,
    allow_cuda_tf32: bool = True,
) -> NoReturn:
    """Refuse to compute codes on an accelerator.

    The parameters are those of the reference.

    Raises
    ------
    UnsupportedError
        Always. `IndicesBuilder.transform_vectors` does the same on processors.
    """
    raise _refusal("compute_pq_codes", "IndicesBuilder.transform_vectors")


def one_pass_train_ivf_pq_on_accelerator(
    dataset: object,
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
) -> NoReturn:
    """Refuse to train centroids and codewords on an accelerator.

    The parameters are those of the reference.

    Raises
    ------
    UnsupportedError
        Always. `IndicesBuilder.prepare_global_ivf_pq` does the same on processors.
    """
    raise _refusal("one_pass_train_ivf_pq_on_accelerator", "IndicesBuilder.prepare_global_ivf_pq")


def one_pass_assign_ivf_pq_on_accelerator(
    dataset: object,
    column: str,
    metric_type: str,
    accelerator: object,
    ivf_kmeans: object,
    pq_kmeans_list: object,
    dst_dataset_uri: object = None,
    batch_size: int = 40960,
    *,
    filter_nan: bool = True,
    allow_cuda_tf32: bool = True,
) -> NoReturn:
    """Refuse to compute partitions and codes on an accelerator.

    The parameters are those of the reference.

    Raises
    ------
    UnsupportedError
        Always. `IndicesBuilder.transform_vectors` does the same on processors.
    """
    raise _refusal("one_pass_assign_ivf_pq_on_accelerator", "IndicesBuilder.transform_vectors")


def _refusal(name: str, instead: str) -> UnsupportedError:
    return UnsupportedError(f"{name} is not supported: models are trained on processors; use {instead}")
