"""Opening datasets the way every task of a job must: one URI, one version, one set of storage settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_dataset import dataset as open_dataset
from lance_dataset.errors import DatasetNotFoundError

__all__ = ["Snapshot", "newest_or_none", "pin"]


@dataclass(frozen=True)
class Snapshot:
    """One version of one dataset; small, picklable, the same for all tasks."""

    uri: str
    version: int
    storage_options: tuple[tuple[str, str], ...] = ()

    def open(self) -> Any:
        """The LanceDataset at this version."""
        return open_dataset(self.uri, version=self.version, storage_options=dict(self.storage_options) or None)


def pin(uri: str, version: Any, storage_options: tuple[tuple[str, str], ...]) -> tuple[Snapshot, Any]:
    """Open a dataset and fix its version: a number, a tag, or None for the newest.

    Returns
    -------
    Snapshot, LanceDataset
        The snapshot has the number of the version, also when a tag or the newest version was asked for.
    """
    opened = open_dataset(uri, version=version, storage_options=dict(storage_options) or None)
    return Snapshot(uri, int(opened.version), storage_options), opened


def newest_or_none(uri: str, storage_options: tuple[tuple[str, str], ...]) -> Any | None:
    """The newest version of a dataset, or None when there is no dataset."""
    try:
        return open_dataset(uri, storage_options=dict(storage_options) or None)
    except DatasetNotFoundError:
        return None
