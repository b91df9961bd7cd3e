"""Maintenance by the policy of a dataset, with work that may be done elsewhere."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import cast

from lance_dataset.api.compaction import CompactionOptions
from lance_dataset.api.scanner.progress import Progress
from lance_dataset.changes.maintaining.due import compaction_options
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.maintenance_policy import MaintenancePolicy

__all__ = ["MaintenanceRunner", "RunnerWork"]

#: Compactions that are computed again after a conflict.
_RETRIES = 3


class MaintenanceRunner(abc.ABC):
    """Does the expensive steps of `LanceDataset.maintain`, for example in a cluster."""

    @abc.abstractmethod
    def compact(self, dataset: Shown, options: CompactionOptions) -> object:
        """Compact a dataset and commit the result.

        Parameters
        ----------
        dataset
            Handle on the newest version.
        options
            Options for `Compaction.plan`; all others are those of the config of the dataset.
        """

    @abc.abstractmethod
    def refresh_indices(self, dataset: Shown, names: Sequence[str]) -> object:
        """Add the rows that the named indices lack, and commit the result."""


class RunnerWork:
    """Work of a runner that the user gave.

    Parameters
    ----------
    runner
        The runner.
    kind
        Class of the handles that it gets.
    """

    def __init__(self, runner: MaintenanceRunner, kind: type[Shown]) -> None:
        self._runner, self._kind = runner, kind

    def compact(self, snapshot: Snapshot, policy: MaintenancePolicy, progress: Progress) -> Snapshot:
        """Compact; after a conflict with another writer, again with the newest version."""

        def attempt(latest: Snapshot) -> Snapshot:
            self._runner.compact(
                self._kind.showing(latest), cast(CompactionOptions, compaction_options(latest, policy))
            )
            return latest.newest()

        return repeated_on_conflict(snapshot, attempt, _RETRIES)

    def refresh(self, snapshot: Snapshot, names: list[str], progress: Progress) -> Snapshot:
        """Refresh indices; after a conflict with another writer, again with the newest version."""

        def attempt(latest: Snapshot) -> Snapshot:
            self._runner.refresh_indices(self._kind.showing(latest), names)
            return latest.newest()

        return repeated_on_conflict(snapshot, attempt, _RETRIES)
