"""Progress of building indices."""

from lance_dataset.records.index_progress import IndexProgress

__all__ = ["IndexProgress"]
