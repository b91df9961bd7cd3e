"""Operations that made the versions of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lance_dataset.errors import LanceError

if TYPE_CHECKING:
    from lance_dataset import LanceDataset

__all__ = ["described_versions"]

_COMMIT_MESSAGE = "__lance_commit_message"


def described_versions(dataset: LanceDataset, versions: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """Return number, time, operation, message and number of rows of versions; None for what is not known.

    Parameters
    ----------
    dataset
        Any version of the branch.
    versions
        Numbers of the versions; None for all. Those that are not there any more are left out.
    """
    wanted = None if versions is None else set(versions)
    return [
        {"version": entry["version"], "timestamp": entry["timestamp"], **_made(dataset, entry)}
        for entry in dataset.versions()
        if wanted is None or entry["version"] in wanted
    ]


def _made(dataset: LanceDataset, entry: Any) -> dict[str, Any]:
    operation = message = rows = None
    try:
        transaction = dataset.read_transaction(entry["version"])
        if transaction is not None:
            operation = type(transaction.operation).__name__
            message = (transaction.transaction_properties or {}).get(_COMMIT_MESSAGE)
    except LanceError:
        operation = None  # a transaction that cannot be read any more
    try:
        rows = dataset.checkout_version(entry["version"]).count_rows()
    except LanceError:
        rows = None
    return {"operation": operation, "message": message, "rows": rows}
