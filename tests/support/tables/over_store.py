"""Handles on datasets whose store is given."""

from __future__ import annotations

from lance_dataset import LanceDataset
from lance_dataset.io.base import ObjectStore
from lance_dataset.read.location import TableLocation
from lance_dataset.read.opening import open_snapshot
from lance_dataset.read.session import Session

__all__ = ["dataset_over"]


def dataset_over(store: ObjectStore, path: str, version: int | None = None) -> LanceDataset:
    """Open a dataset at a path of a store."""
    return LanceDataset.showing(open_snapshot(TableLocation(path, store, path, Session()), version))
