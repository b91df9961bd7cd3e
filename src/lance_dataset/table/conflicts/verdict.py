"""What a change that others committed means for ours, and the errors that say so."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_dataset.errors import CommitConflictError

__all__ = ["AffectedRows", "Condition", "Verdict", "incompatible_conflict", "retryable_conflict"]

#: Offsets of the rows that a change newly masks, by fragment id.
AffectedRows = Mapping[int, npt.NDArray[np.uint32]]


class Verdict(enum.IntEnum):
    """What an already committed change means for ours; of several conditions the highest verdict counts."""

    COMPATIBLE = 0
    #: Compatible if the rows do not overlap, which has to be found out in the files of the common fragments.
    REBASE = 1
    #: Our change has to be computed again on the newest version.
    RETRYABLE = 2
    #: Computing it again cannot be right without somebody looking at what the other one did.
    INCOMPATIBLE = 3


#: From our operation, theirs and the rows that ours masks (None where they are not known) to a verdict.
Condition = Callable[[Any, Any, "AffectedRows | None"], Verdict]


def retryable_conflict(ours: str, theirs: str, version: int) -> CommitConflictError:
    """The error for a change that must be computed again on the newest version.

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
    """The error for a change that contradicts another one; the parameters are those of `retryable_conflict`."""
    return CommitConflictError(
        f"Incompatible transaction: This {ours} transaction is incompatible with concurrent transaction {theirs} at "
        f"version {version}. Retrying does not help: open the newest version and decide what to do with it.",
        retryable=False,
    )
