"""Retries of a change when other writers changed the same rows."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import TypeVar

from lance_dataset.arguments import check_duration, checked_integer
from lance_dataset.errors import CommitConflictError
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.defaults import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT

__all__ = ["repeated_on_conflict"]

_Result = TypeVar("_Result")


def repeated_on_conflict(
    snapshot: Snapshot,
    change: Callable[[Snapshot], _Result],
    conflict_retries: int | None = DEFAULT_CONFLICT_RETRIES,
    retry_timeout: dt.timedelta | None = DEFAULT_RETRY_TIMEOUT,
) -> _Result:
    """Compute and commit a change; retry on the newest version after a conflict.

    Parameters
    ----------
    snapshot
        Version of the first attempt.
    change
        Computes the change against a snapshot, commits it, and returns the result. If it fails, it removes the files
        that it wrote.
    conflict_retries, retry_timeout
        Maximum number of retries, and time after which none is started; None for the defaults.

    Raises
    ------
    CommitConflictError
        The table was replaced by another one, or the retries ran out.
    OutOfRangeError, InvalidInputError, TypeError
        `conflict_retries` is not a count, or `retry_timeout` is not a duration.
    """
    retries = DEFAULT_CONFLICT_RETRIES if conflict_retries is None else conflict_retries
    timeout = DEFAULT_RETRY_TIMEOUT if retry_timeout is None else retry_timeout
    retries = checked_integer("conflict_retries", retries, bits=32)
    check_duration("retry_timeout", timeout)
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        try:
            return change(snapshot)
        except CommitConflictError as error:
            if not error.retryable or retries == 0 or time.monotonic() > deadline:
                raise
            retries -= 1
            snapshot = snapshot.newest()
