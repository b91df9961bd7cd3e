"""Queries of searches, under the name that the reference uses."""

from lance_dataset.scan.queries import MinHashQuery

__all__ = ["MinHashQuery"]
