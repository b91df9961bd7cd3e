"""Helpers for programs around datasets."""

from lance_dataset.api.times import sanitize_ts, td_to_micros
from lance_dataset.api.vectors.graphs import HNSW
from lance_dataset.api.vectors.kmeans import KMeans
from lance_dataset.api.vectors.recall import validate_vector_index
from lance_dataset.io.option_values import strict_bool
from lance_dataset.table.cleanup.durations import parse_duration

__all__ = [
    "HNSW",
    "KMeans",
    "parse_duration",
    "sanitize_ts",
    "strict_bool",
    "td_to_micros",
    "validate_vector_index",
]
