"""Computing a change anew when other writers changed the same rows."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lance_dataset.arguments import check_duration, checked_integer
from lance_dataset.errors import CommitConflictError
from lance_dataset.table.manifest import Manifest

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["DEFAULT_CONFLICT_RETRIES", "DEFAULT_RETRY_TIMEOUT", "repeated_on_conflict"]

_Result = TypeVar("_Result")

DEFAULT_CONFLICT_RETRIES = 10
DEFAULT_RETRY_TIMEOUT = dt.timedelta(seconds=30)


def repeated_on_conflict(
    dataset: LanceDataset,
    change: Callable[[LanceDataset], tuple[Manifest, _Result]],
    conflict_retries: int | None,
    retry_timeout: dt.timedelta | None,
) -> _Result:
    """Compute and commit a change, again on the newest version when others were faster; the handle moves to the result.

    Parameters
    ----------
    dataset
        The first attempt starts from the version it shows.
    change
        Computes the change against the version that a handle shows, commits it, and returns the new version and what
        else is to be returned. It takes back what it wrote when it fails.
    conflict_retries, retry_timeout
        How often, and how long, to repeat it; None for the defaults.

    Raises
    ------
    CommitConflictError
        The dataset was replaced by another, or repeating did not help.
    InvalidInputError, TypeError
        `conflict_retries` or `retry_timeout` is none.
    """
    retries = DEFAULT_CONFLICT_RETRIES if conflict_retries is None else conflict_retries
    timeout = DEFAULT_RETRY_TIMEOUT if retry_timeout is None else retry_timeout
    retries = checked_integer("conflict_retries", retries, bits=32)
    check_duration("retry_timeout", timeout)
    deadline = time.monotonic() + timeout.total_seconds()
    handle = dataset
    while True:
        try:
            manifest, result = change(handle)
        except CommitConflictError as error:
            if not error.retryable or retries == 0 or time.monotonic() > deadline:
                raise
            retries -= 1
            handle = dataset._at(dataset._load(None))
            continue
        dataset._show(manifest)
        return result
