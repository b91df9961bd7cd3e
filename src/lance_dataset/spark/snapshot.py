"""Opening a dataset identically in every task of a job: one URI, one version, one set of storage options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_dataset import dataset as open_dataset
from lance_dataset.errors import DatasetNotFoundError

__all__ = ["Snapshot", "newest_or_none", "pin", "settings_option"]


@dataclass(frozen=True)
class Snapshot:
    """One version of one dataset; small, picklable, and the same for all tasks."""

    uri: str
    version: int
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    branch: str | None = None

    def open(self) -> Any:
        """Open the LanceDataset at this version."""
        version = (self.branch, self.version) if self.branch else self.version
        return open_dataset(self.uri, version=version, storage_options=dict(self.storage_options) or None)


def pin(
    uri: str,
    version: Any,
    storage_options: tuple[tuple[str, str], ...],
    *,
    branch: str | None = None,
    timestamp: str | None = None,
) -> tuple[Snapshot, Any]:
    """Open a dataset and pin its version.

    Parameters
    ----------
    uri, storage_options
        Path or URI of the dataset, and settings of its object store.
    version
        Version number or tag; None for the newest.
    branch
        Branch that the version number belongs to.
    timestamp
        Moment in ISO format: the newest version that is not younger.

    Returns
    -------
    Snapshot, LanceDataset
        The snapshot has the version number, even if something else was requested.
    """
    wanted = (branch, version) if branch else version
    opened = open_dataset(uri, version=wanted, asof=timestamp, storage_options=dict(storage_options) or None)
    return Snapshot(uri, int(opened.version), storage_options, opened.branch), opened


def newest_or_none(uri: str, storage_options: tuple[tuple[str, str], ...]) -> Any | None:
    """Open the newest version of a dataset, or return None if it does not exist."""
    try:
        return open_dataset(uri, storage_options=dict(storage_options) or None)
    except DatasetNotFoundError:
        return None


def settings_option(settings: Mapping[str, str] | None) -> dict[str, str]:
    """Return settings of an object store as an option of ``spark.read`` or ``df.write``."""
    return {"storage_options": json.dumps(dict(settings))} if settings else {}
