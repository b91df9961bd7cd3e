"""Readings of one dataset by two sides, and the outcome of their comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from support.files.legacy_loss import WRONG, losses
from support.tables.equality import assert_same

__all__ = ["FILTERED", "MARKS", "STEP", "Outcome", "Reading", "judge_ours", "judge_theirs", "read_back", "true_reading"]

#: Contents of the cells of the tables.
MARKS = {
    "same": "=",
    "lossy": "≈",
    "right": "+",
    "none": "–",
    "unreadable": "∅",
    "unknown": "·",
    "refused": "✗",
    "differs": "≠",
    "broken": "!",
}
_PARTS = ("scan", "take", "filter")
#: A take requests every n-th row, starting with the last one.
STEP = 7
#: A filtered scan requests rows whose `id` is at least the first and below the second number.
FILTERED = (20, 50)


@dataclass(frozen=True)
class Outcome:
    """A mark (a key of `MARKS`) and its reason, if it needs one."""

    mark: str
    reason: str = ""


@dataclass(frozen=True)
class Reading:
    """Result of reading a dataset: the tables of a scan, a take and a filtered scan, or their errors."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def message(self) -> str:
        return next(iter(self.errors.values()), "")

    def problem(self, truth: Reading) -> str:
        """Describe the parts that differ from another reading; empty without differences."""
        for part in _PARTS:
            if part in self.errors:
                return f"{part} fails: {self.errors[part]}"
        wrong = [part for part in _PARTS if not _same(self.tables[part], truth.tables[part])]
        return f"{' and '.join(wrong)} differ{'s' * (len(wrong) == 1)}" if wrong else ""

    def consistent(self) -> Reading:
        """Return the reading expected from the take and the filter, given the rows of the scan."""
        return _derived(self.tables["scan"])


def read_back(result: Mapping[str, Any], out: Path) -> Reading:
    """Return the result of a `read` task that stored tables at `out`."""
    if "error" in result:
        return Reading({}, {part: str(result["error"]) for part in _PARTS})
    tables, errors = {}, dict(result["errors"])
    for part in _PARTS:
        if part in errors:
            continue
        # Not opened by its path, which would map the file: the next reading is stored there.
        table = pa.ipc.open_stream(Path(f"{out}.{part}").read_bytes()).read_all()
        try:
            table.validate(full=True)
        except pa.ArrowException as error:
            errors[part] = f"Arrow data that is not valid: {error}"
        else:
            tables[part] = table
    return Reading(tables, errors)


def true_reading(rows: pa.Table, deleted: tuple[int, int]) -> Reading:
    """Return the expected reading: the written rows without the deleted ids."""
    number = rows["id"]
    gone = pc.and_(pc.greater_equal(number, deleted[0]), pc.less(number, deleted[1]))
    return _derived(rows.filter(pc.invert(gone)))


def _derived(scan: pa.Table) -> Reading:
    """Return a scan, and the results of a take and a filter of its rows."""
    number = scan["id"]
    chosen = pc.and_(pc.greater_equal(number, FILTERED[0]), pc.less(number, FILTERED[1]))
    # Slices instead of a take: Arrow cannot take from chunks whose dictionaries together are too large.
    taken = pa.concat_tables([scan.slice(0, 0), *(scan.slice(row, 1) for row in range(scan.num_rows)[::-STEP])])
    return Reading({"scan": scan, "take": taken, "filter": scan.filter(chosen)})


def _same(left: pa.Table, right: pa.Table) -> bool:
    try:
        assert_same(left, right)
    except AssertionError:
        return False
    return True


def _loss(read: pa.Table, written: pa.Table) -> str:
    """Describe the differences between a table read and the table written."""
    if read["value"].type != written["value"].type:
        return f"comes back as {read['value'].type}"
    return ", ".join(sorted(losses(read, written)))


def _holds(reading: Reading, truth: Reading) -> bool:
    """Return True if a reading has the written rows, except for what legacy files lose, in all its parts."""
    lost = losses(reading.tables["scan"], truth.tables["scan"])
    return WRONG not in lost and not reading.problem(reading.consistent())


def judge_theirs(refusal: str, theirs: Reading, ours: Reading, truth: Reading) -> Outcome:
    """Judge a dataset that a release wrote, or refused to write (with this message)."""
    if refusal:
        return Outcome("none", refusal)
    problem = ours.problem(truth)
    if problem and "scan" in ours.errors:
        mark = "unreadable" if "scan" in theirs.errors else "refused"
        return Outcome(mark, ours.message)
    if not theirs.errors and not ours.problem(theirs):
        return Outcome("lossy", _loss(ours.tables["scan"], truth.tables["scan"])) if problem else Outcome("same")
    if not problem or (not ours.errors and _holds(ours, truth)):
        return Outcome("right", f"its own {theirs.problem(ours)}")
    return Outcome("differs", f"{problem}; its own {theirs.problem(truth) or 'reading is right'}")


def judge_ours(refusal: str, theirs: Reading, ours: Reading, truth: Reading, own: Outcome) -> Outcome:
    """Judge a dataset that this package wrote, or refused to write (with this message).

    Parameters
    ----------
    own
        Outcome of the release's own dataset of the same rows.

    Returns
    -------
    Outcome
        Refusals and differences may be the fault of the release alone: see whether it reads the reference's files.
    """
    if refusal:
        return Outcome("none", refusal)
    if ours.errors:
        return Outcome("broken", ours.message)
    if not theirs.errors and not ours.problem(theirs):
        if not ours.problem(truth):
            return Outcome("same")
        return Outcome("lossy", _loss(ours.tables["scan"], truth.tables["scan"]))
    problem = theirs.problem(ours)
    if not theirs.errors and _holds(theirs, truth):
        sides = {"it": theirs, "we": ours}
        lost = [
            f"{side}: {_loss(read.tables['scan'], truth.tables['scan']) or 'nothing is lost'}"
            for side, read in sides.items()
        ]
        return Outcome("lossy", f"read differently; {', '.join(lost)}")
    if own.mark == "none":
        return Outcome("unknown", problem)
    if own.mark == "unreadable" or (own.mark in ("right", "differs") and "its own" in own.reason):
        return Outcome("right", f"its {problem}, as with its own files")
    return Outcome("refused" if "scan" in theirs.errors else "differs", problem)
