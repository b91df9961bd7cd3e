"""Verdicts on a change, given one that others committed, and the errors that report them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_dataset.errors import CommitConflictError

__all__ = ["AffectedRows", "Condition", "Verdict", "incompatible_conflict", "retryable_conflict"]

#: Offsets of the rows that a change newly deletes, by fragment id.
AffectedRows = Mapping[int, npt.NDArray[np.uint32]]


class Verdict(enum.IntEnum):
    """Effect of an already committed change on ours. If several conditions apply, the highest verdict wins."""

    COMPATIBLE = 0
    #: Compatible if the rows do not overlap, which must be checked in the files of the common fragments.
    REBASE = 1
    #: Our change must be computed again on the newest version.
    RETRYABLE = 2
    #: Computing it again cannot be right until someone has looked at the other change.
    INCOMPATIBLE = 3


#: Maps our operation, theirs and the rows that ours deletes (None if they are not known) to a verdict.
Condition = Callable[[Any, Any, "AffectedRows | None"], Verdict]


def retryable_conflict(ours: str, theirs: str, version: int) -> CommitConflictError:
    """Return the error for a change that must be computed again on the newest version.

    Parameters
    ----------
    ours, theirs
        Names of the two kinds of operations.
    version
        Version that `theirs` made.
    """
    return CommitConflictError(
        f"Retryable commit conflict for version {version}: This {ours} transaction was preempted by concurrent "
        f"transaction {theirs} at version {version}. Please retry.",
        retryable=True,
    )


def incompatible_conflict(ours: str, theirs: str, version: int) -> CommitConflictError:
    """Return the error for a change that contradicts another one.

    The parameters are those of `retryable_conflict`.
    """
    return CommitConflictError(
        f"Incompatible transaction: This {ours} transaction is incompatible with concurrent transaction {theirs} at "
        f"version {version}. Retrying does not help: open the newest version and decide what to do with it.",
        retryable=False,
    )
