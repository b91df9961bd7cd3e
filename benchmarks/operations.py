"""Measured operations: each can run once and knows the right answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contenders import Contender, Handle
from data import Dataset
from touch import touch

TAKE_SETS = 64
TAKE_ROWS = 1_000
MANY_ROWS = 100_000
THREADS = 8
THREADED_TAKES = 10_000
#: Shares of the rows that filters keep.
SHARES = (0.001, 0.01, 0.1, 0.9)


@dataclass
class Subject:
    """One contender with the table it wrote."""

    contender: Contender
    path: Path
    # Kept open while the benchmark runs; takes use it, like a program that serves lookups.
    handle: Handle

    def reopened(self) -> Handle:
        return self.contender.open(self.path)


@dataclass(frozen=True)
class Operation:
    """An operation to time.

    Attributes
    ----------
    run
        Runs the operation; the second argument is the number of the repetition, for operations that vary their input.
    expected
        Function from a repetition number to the result every contender must have; None if there is nothing to compare.
    repeated
        True if the operation is so short that one timing covers many repetitions.
    kind
        Kind of operation in `headline.py`, which has a target for each.
    lance_only
        True if other formats are left out: a take of a row is so slow for them that ten thousand take minutes.
    """

    name: str
    run: Callable[[Subject, int], object]
    expected: Callable[[int], object] | None = None
    repeated: bool = False
    kind: str | None = None
    lance_only: bool = False


#: Rows of a batch for all contenders, the default of ours and of the reference.
BATCH_ROWS = 8192


def scan_and_touch(subject: Subject, columns: list[str] | None = None) -> pa.Table:
    table = subject.reopened().scan(columns)
    touch(table)
    return table


def batches_and_touch(handle: Handle, rows: int | None = None) -> int:
    """Iterate over batches of some rows, or of as many as the contender likes; return the number of all rows.

    Every byte of each batch is read, which costs more if batches are small.
    """
    total = 0
    for batch in handle.batches(rows):
        touch(batch)
        total += batch.num_rows
    return total


def threaded(calls: Sequence[Callable[[], object]]) -> None:
    """Make the calls from `THREADS` threads, each with its share of them; errors are raised."""

    def share(first: int) -> None:
        for call in calls[first::THREADS]:
            call()

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(share, first) for first in range(THREADS)]:
            done.result()


def operations(dataset: Dataset, table: pa.Table) -> list[Operation]:
    """Return the read operations on one table, in the order of the report."""
    rows = table.num_rows
    return [
        Operation("open, count rows", lambda subject, _: subject.reopened().count(), lambda _: rows, repeated=True),
        *scans(dataset, table),
        *(operation for share in SHARES for operation in filters(dataset, table, share)),
        *takes(dataset, table),
    ]


def scans(dataset: Dataset, table: pa.Table) -> list[Operation]:
    def column_scan(name: str) -> Operation:
        return Operation(
            f"scan column {name}, touch",
            lambda subject, _: scan_and_touch(subject, [name]),
            lambda _: table.select([name]),
            kind="column",
        )

    rows = table.num_rows
    return [
        # The only scan without touching: its time is what a lazy reader promises, not the cost of reading.
        Operation("scan, untouched", lambda subject, _: subject.reopened().scan(), lambda _: table, kind="scan"),
        Operation("scan, touch", lambda subject, _: scan_and_touch(subject), lambda _: table, kind="scan"),
        Operation("scan in batches, touch", lambda subject, _: batches_and_touch(subject.reopened()), lambda _: rows),
        Operation(
            f"scan in batches of {BATCH_ROWS:,}, touch",
            lambda subject, _: batches_and_touch(subject.reopened(), BATCH_ROWS),
            lambda _: rows,
        ),
        *(column_scan(name) for name in dataset.single_columns),
    ]


def filters(dataset: Dataset, table: pa.Table, share: float) -> list[Operation]:
    """Return a scan that keeps about that share of the rows, and the count of them."""
    comparison = dataset.comparison(table.num_rows, share)
    passes = pc.field(comparison.column) < comparison.bound
    return [
        Operation(
            f"filter {comparison.column}, {share:.1%}",
            lambda subject, _: subject.reopened().filtered(comparison),
            lambda _: table.filter(passes),
            repeated=True,
            kind="filter",
        ),
        Operation(
            f"count {comparison.column}, {share:.1%}",
            lambda subject, _: subject.reopened().count(comparison),
            lambda _: table.filter(passes).num_rows,
            repeated=True,
            kind="count",
        ),
    ]


def takes(dataset: Dataset, table: pa.Table) -> list[Operation]:
    rows = table.num_rows
    rng = np.random.default_rng(len(dataset.name))
    single = [rng.integers(0, rows, 1) for _ in range(TAKE_SETS)]
    wanted = min(TAKE_ROWS, rows)
    shuffled = [rng.choice(rows, wanted, replace=False) for _ in range(TAKE_SETS)]
    rising = [np.sort(numbers) for numbers in shuffled]
    many = [rng.choice(rows, min(MANY_ROWS, rows), replace=False) for _ in range(4)]
    columns = list(dataset.record_columns)
    record = table.select(columns)

    def take(name: str, sets: list[np.ndarray], kind: str, *, repeated: bool = True) -> Operation:
        return Operation(
            name,
            lambda subject, repetition: subject.handle.take(sets[repetition % len(sets)]),
            lambda repetition: table.take(pa.array(sets[repetition % len(sets)])),
            repeated=repeated,
            kind=kind,
        )

    def from_threads(subject: Subject, _: int) -> None:
        calls = [partial(subject.handle.take, single[i % TAKE_SETS], columns) for i in range(THREADED_TAKES)]
        threaded(calls)

    few = f"{len(columns)} columns"
    return [
        take("take 1 row", single, "take one"),
        Operation(
            f"take 1 row, {few}",
            lambda subject, repetition: subject.handle.take(single[repetition % TAKE_SETS], columns),
            lambda repetition: record.take(pa.array(single[repetition % TAKE_SETS])),
            repeated=True,
            kind="take one",
        ),
        take(f"take {wanted:,} rows, sorted", rising, "take many"),
        take(f"take {wanted:,} rows, unsorted", shuffled, "take many"),
        take(f"take {len(many[0]):,} rows, unsorted", many, "take most", repeated=False),
        Operation(
            f"{THREADED_TAKES:,} takes of 1 row, {few}, {THREADS} threads",
            from_threads,
            kind="take threads",
            lance_only=True,
        ),
    ]


def check(operation: Operation, subject: Subject, result: object, expected: object) -> None:
    """Stop the whole benchmark if the answer of a contender differs from the source table."""
    who = f"{subject.contender.name}, {operation.name}"
    if isinstance(expected, pa.Table):
        if not isinstance(result, pa.Table) or result.column_names != expected.column_names:
            raise SystemExit(f"{who}: columns differ from those expected")
        for name, column in zip(expected.column_names, expected.columns, strict=True):
            if not result.column(name).cast(column.type).equals(column):
                raise SystemExit(f"{who}: wrong values in column {name}")
    elif result != expected:
        raise SystemExit(f"{who}: got {result!r}, expected {expected!r}")
