"""Helpers for vectors: tables of them, partitions of their indices, near duplicates."""

from lance_dataset.api.dataset.dataset import write_dataset
from lance_dataset.api.vectors.accelerators import (
    compute_partitions,
    compute_pq_codes,
    one_pass_assign_ivf_pq_on_accelerator,
    one_pass_train_ivf_pq_on_accelerator,
    train_ivf_centroids_on_accelerator,
    train_pq_codebook_on_accelerator,
)
from lance_dataset.api.vectors.duplicates import (
    find_duplicate_pairs,
    find_duplicate_pairs_in_partition,
    hamming_clustering_for_ivf_partition,
    hamming_clustering_for_range,
    hamming_clustering_for_sample,
)
from lance_dataset.api.vectors.partitions import get_ivf_partition_info
from lance_dataset.api.vectors.tables import vec_to_table
from lance_dataset.log import LOGGER

__all__ = [
    "LOGGER",
    "compute_partitions",
    "compute_pq_codes",
    "find_duplicate_pairs",
    "find_duplicate_pairs_in_partition",
    "get_ivf_partition_info",
    "hamming_clustering_for_ivf_partition",
    "hamming_clustering_for_range",
    "hamming_clustering_for_sample",
    "one_pass_assign_ivf_pq_on_accelerator",
    "one_pass_train_ivf_pq_on_accelerator",
    "train_ivf_centroids_on_accelerator",
    "train_pq_codebook_on_accelerator",
    "vec_to_table",
    "write_dataset",
]
