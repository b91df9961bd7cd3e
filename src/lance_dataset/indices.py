"""Descriptions of indices, and kinds of indices with parameters."""

from lance_dataset.records.index_config import IndexConfig
from lance_dataset.records.index_description import IndexDescription, IndexInformation, IndexSegmentDescription

__all__ = ["IndexConfig", "IndexDescription", "IndexInformation", "IndexSegmentDescription"]
