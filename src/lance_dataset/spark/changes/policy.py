"""Maintenance by the policy of a dataset, with compaction and indices by tasks of Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from lance_dataset import dataset as open_dataset
from lance_dataset.dataset import MaintenanceReport, MaintenanceRunner
from lance_dataset.spark.changes.maintenance import compact
from lance_dataset.spark.changes.upkeep import refresh_indices

__all__ = ["maintain"]


def maintain(
    spark: Any,
    uri: str,
    *,
    dry_run: bool = False,
    wait: dt.timedelta | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> MaintenanceReport:
    """Do what the policy in the config of a dataset says is due, see ``LanceDataset.maintain``.

    Tasks rewrite fragments and build segments of indices. The driver has the lease, commits and cleans up.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset, or of a branch of it.
    dry_run
        True to change nothing, and only report what is due.
    wait
        How long to wait if another process maintains the dataset; by default, the report says who does.
    storage_options
        Settings of the object store.

    Returns
    -------
    MaintenanceReport
        What was done, or is due.

    Raises
    ------
    InvalidInputError
        The policy has an unknown key or an invalid value.
    TaskError
        A task failed; the message names its fragments. The steps before stay done.
    """
    dataset = open_dataset(uri, storage_options=dict(storage_options) if storage_options else None)
    return dataset.maintain(dry_run=dry_run, wait=wait, runner=_Tasks(spark, uri, storage_options))


class _Tasks(MaintenanceRunner):
    """Work by tasks of Spark."""

    def __init__(self, spark: Any, uri: str, storage_options: Mapping[str, str] | None) -> None:
        self._spark, self._uri, self._storage_options = spark, uri, storage_options

    def compact(self, dataset: Any, options: Mapping[str, Any]) -> object:
        """Rewrite fragments in tasks, with one commit."""
        return compact(self._spark, self._uri, storage_options=self._storage_options, **options)

    def refresh_indices(self, dataset: Any, names: Sequence[str]) -> object:
        """Build segments of indices in tasks, with one commit for each index."""
        return refresh_indices(self._spark, self._uri, names, storage_options=self._storage_options)
