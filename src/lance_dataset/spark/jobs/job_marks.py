"""Marks in transactions by which a job that is repeated knows that it has committed already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lance_dataset.errors import MissingFileError, VersionNotFoundError

__all__ = ["JobMark"]

_TXN, _QUERY, _BATCH, _PART = "txn_id", "queryId", "batchId", "batchPart"


@dataclass(frozen=True)
class JobMark:
    """Identity of a write: that of a job, or of one batch of a streaming query.

    Attributes
    ----------
    job
        Text chosen by the user, or id of a streaming query.
    batch
        Number of the batch of the query; None for a job.
    part
        Which of the writes of the batch, if there are several.
    """

    job: str
    batch: int | None = None
    part: str = ""

    @property
    def properties(self) -> dict[str, str]:
        """Transaction properties that say it."""
        if self.batch is None:
            return {_TXN: self.job}
        return {_QUERY: self.job, _BATCH: str(self.batch)} | ({_PART: self.part} if self.part else {})

    def committed_in(self, dataset: Any, after: int = 0) -> int | None:
        """Return the version that this write made, or None.

        Parameters
        ----------
        dataset
            Open LanceDataset; its version is the last that is looked at.
        after
            Versions up to this one are not looked at. The search ends at versions that a cleanup removed.
        """
        for version, found in _properties(dataset, after):
            if self.batch is None:
                if found.get(_TXN) == self.job:
                    return version
            elif found.get(_QUERY) == self.job:
                batch = found.get(_BATCH, "")
                if batch == str(self.batch) and found.get(_PART, "") == self.part:
                    return version
                if batch.isdecimal() and int(batch) < self.batch:
                    return None  # batches are committed in order
        return None


def _properties(dataset: Any, after: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield versions and the properties of their transactions, the newest first."""
    for version in range(int(dataset.version), after, -1):
        try:
            transaction = dataset.read_transaction(version)
        except (VersionNotFoundError, MissingFileError):
            return
        yield version, dict(transaction.transaction_properties or {}) if transaction is not None else {}
