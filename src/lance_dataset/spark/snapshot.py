"""Opening a dataset identically in every task of a job: one URI, one version, one set of storage options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lance_dataset import dataset as open_dataset
from lance_dataset.errors import DatasetNotFoundError

__all__ = ["Snapshot", "newest_or_none", "pin"]


@dataclass(frozen=True)
class Snapshot:
    """One version of one dataset; small, picklable, and the same for all tasks."""

    uri: str
    version: int
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def open(self) -> Any:
        """Open the LanceDataset at this version."""
        return open_dataset(self.uri, version=self.version, storage_options=dict(self.storage_options) or None)


def pin(uri: str, version: Any, storage_options: tuple[tuple[str, str], ...]) -> tuple[Snapshot, Any]:
    """Open a dataset and pin its version: a number, a tag, or None for the newest.

    Returns
    -------
    Snapshot, LanceDataset
        The snapshot has the version number, even if a tag or the newest version was requested.
    """
    opened = open_dataset(uri, version=version, storage_options=dict(storage_options) or None)
    return Snapshot(uri, int(opened.version), storage_options), opened


def newest_or_none(uri: str, storage_options: tuple[tuple[str, str], ...]) -> Any | None:
    """Open the newest version of a dataset, or return None if it does not exist."""
    try:
        return open_dataset(uri, storage_options=dict(storage_options) or None)
    except DatasetNotFoundError:
        return None
