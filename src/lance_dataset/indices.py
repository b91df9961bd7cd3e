"""Descriptions of indices."""

from lance_dataset.records.index_description import IndexDescription, IndexInformation, IndexSegmentDescription

__all__ = ["IndexDescription", "IndexInformation", "IndexSegmentDescription"]
