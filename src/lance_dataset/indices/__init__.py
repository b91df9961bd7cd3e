"""Indices: descriptions, kinds with parameters, models of vector indices and their step-wise training."""

from lance_dataset.api.vector_models import IvfModel, PqModel
from lance_dataset.api.vectors.builder import IndicesBuilder
from lance_dataset.records.index import IndexSegment
from lance_dataset.records.index_config import IndexConfig
from lance_dataset.records.index_description import (
    IndexDescription,
    IndexFileVersion,
    IndexInformation,
    IndexSegmentDescription,
    SupportedDistributedIndices,
)

__all__ = [
    "IndexConfig",
    "IndexDescription",
    "IndexFileVersion",
    "IndexInformation",
    "IndexSegment",
    "IndexSegmentDescription",
    "IndicesBuilder",
    "IvfModel",
    "PqModel",
    "SupportedDistributedIndices",
]
