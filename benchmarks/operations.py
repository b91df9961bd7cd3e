"""What is measured: each operation knows how to do its work once and what the right answer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contenders import Contender, Handle
from data import Dataset
from touch import touch

TAKE_SETS = 64
TAKE_ROWS = 1_000


@dataclass
class Subject:
    """One contender with the table it wrote."""

    contender: Contender
    path: Path
    # Open for as long as the benchmark runs; takes use it, as a program serving lookups would.
    handle: Handle

    def reopened(self) -> Handle:
        return self.contender.open(self.path)


@dataclass(frozen=True)
class Operation:
    """Something to time.

    Attributes
    ----------
    run
        Does it; the second argument counts the repetitions, for operations that vary their input.
    expected
        From a repetition number to the result every contender must have; None when there is nothing to compare.
    repeated
        Whether it is so short that one timing covers many repetitions.
    kind
        What kind of operation it is to `headline.py`, which knows a target for each.
    """

    name: str
    run: Callable[[Subject, int], object]
    expected: Callable[[int], object] | None = None
    repeated: bool = False
    kind: str | None = None


def scan_and_touch(subject: Subject, columns: list[str] | None = None) -> pa.Table:
    table = subject.reopened().scan(columns)
    touch(table)
    return table


def batches_and_touch(handle: Handle) -> int:
    """Iterate over the batches, reading every byte of each; the number of rows."""
    rows = 0
    for batch in handle.batches():
        touch(batch)
        rows += batch.num_rows
    return rows


def operations(dataset: Dataset, table: pa.Table) -> list[Operation]:
    """The read operations on one table, in the order they are reported."""
    rows = table.num_rows
    rng = np.random.default_rng(len(dataset.name))
    single = [rng.integers(0, rows, 1) for _ in range(TAKE_SETS)]
    wanted = min(TAKE_ROWS, rows)
    shuffled = [rng.choice(rows, wanted, replace=False) for _ in range(TAKE_SETS)]
    rising = [np.sort(numbers) for numbers in shuffled]
    comparison = dataset.comparison(rows)

    def filtered() -> pa.Table:
        return table.filter(pc.field(comparison.column) < comparison.bound)

    def column_scan(name: str) -> Operation:
        return Operation(
            f"scan column {name}, touch",
            lambda subject, _: scan_and_touch(subject, [name]),
            lambda _: table.select([name]),
            kind="column",
        )

    def take(name: str, sets: list[np.ndarray], kind: str) -> Operation:
        return Operation(
            name,
            lambda subject, repetition: subject.handle.take(sets[repetition % TAKE_SETS]),
            lambda repetition: table.take(pa.array(sets[repetition % TAKE_SETS])),
            repeated=True,
            kind=kind,
        )

    return [
        Operation("open, count rows", lambda subject, _: subject.reopened().count(), lambda _: rows, repeated=True),
        # The one scan without touching: its time is what a lazy reader promises, not what reading costs.
        Operation("scan, untouched", lambda subject, _: subject.reopened().scan(), lambda _: table, kind="scan"),
        Operation("scan, touch", lambda subject, _: scan_and_touch(subject), lambda _: table, kind="scan"),
        Operation("scan in batches, touch", lambda subject, _: batches_and_touch(subject.reopened()), lambda _: rows),
        *(column_scan(name) for name in dataset.single_columns),
        Operation(
            f"filter {comparison.column} < {comparison.bound:,}",
            lambda subject, _: subject.reopened().filtered(comparison),
            lambda _: filtered(),
        ),
        take("take 1 row", single, "take one"),
        take(f"take {wanted:,} rows, sorted", rising, "take many"),
        take(f"take {wanted:,} rows, unsorted", shuffled, "take many"),
    ]


def check(operation: Operation, subject: Subject, result: object, expected: object) -> None:
    """Stop the whole benchmark when a contender gives another answer than the source table."""
    who = f"{subject.contender.name}, {operation.name}"
    if isinstance(expected, pa.Table):
        if not isinstance(result, pa.Table) or result.column_names != expected.column_names:
            raise SystemExit(f"{who}: got other columns than expected")
        for name, column in zip(expected.column_names, expected.columns, strict=True):
            if not result.column(name).cast(column.type).equals(column):
                raise SystemExit(f"{who}: wrong values in column {name}")
    elif result != expected:
        raise SystemExit(f"{who}: got {result!r}, expected {expected!r}")
