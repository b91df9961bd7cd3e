"""Program that kills writers at random moments and checks the dataset after each kill; run by test_kill.py.

A fresh process forks the writers: forking one that has imported other libraries with threads is not safe.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lance_dataset as lance

ROWS = 20_000


def batch_of(round_number: int) -> pa.Table:
    """Return rows that carry the round that wrote them, and a checksum each."""
    ids = np.arange(ROWS, dtype=np.int64) + round_number * ROWS
    return pa.table(
        {
            "round": np.full(ROWS, round_number, np.int64),
            "id": ids,
            "text": [f"row-{value}" for value in ids.tolist()],
            "check": ids * 7 + 1,
        }
    )


def churn(uri: str, first: int, report: int) -> None:
    """Append, delete and overwrite until killed; report each version after it was committed."""
    number = first
    while True:
        kind = number % 5
        if kind == 3:
            dataset = lance.dataset(uri)
            dataset.delete(f"id % {3 + number % 7} = 0")
        elif kind == 4:
            dataset = lance.write_dataset(batch_of(number), uri, mode="overwrite", max_rows_per_file=ROWS // 3)
        else:
            dataset = lance.write_dataset(batch_of(number), uri, mode="append", max_rows_per_file=ROWS // 2)
        os.write(report, b"%d\n" % dataset.version)
        number += 1


def run_and_kill(uri: str, first: int, delay: float) -> int:
    """Let a child work for a while, kill it, and return the last version it reported (0: none)."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            churn(uri, first, write_end)
        finally:
            os._exit(70)
    os.close(write_end)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read_end, "rb") as reports:
        lines = reports.read().split(b"\n")[:-1]
    assert os.WIFSIGNALED(status), f"the writer failed by itself: {status}"
    return int(lines[-1]) if lines else 0


def check_complete(dataset: lance.LanceDataset) -> None:
    """Check that every row of the version exists once and has the written values."""
    table = dataset.to_table()
    assert table.num_rows == dataset.count_rows()
    assert pc.all(pc.equal(table["check"], pc.add(pc.multiply(table["id"], 7), 1))).as_py() is not False
    expected = pc.binary_join_element_wise("row", pc.cast(table["id"], pa.string()), "-")
    assert table["text"].equals(expected) or table.num_rows == 0
    assert len(pc.unique(table["id"])) == table.num_rows


def main(uri: str, kills: int) -> None:
    """Kill the given number of writers; print the number of versions and of kills that came after a commit."""
    chance = random.Random(11)
    started = time.monotonic()
    lance.write_dataset(batch_of(0), uri)
    # long enough for some commits, on a busy machine too
    longest = min(max(0.12, 2 * (time.monotonic() - started)), 0.6)
    committed, first, reported = 1, 1, 0
    for kill in range(kills):
        last = run_and_kill(uri, first, chance.uniform(0.0, longest))
        dataset = lance.dataset(uri)
        assert dataset.version >= max(committed, last), f"kill {kill}: a committed version is gone"
        check_complete(dataset)
        reported += last > committed
        committed = dataset.version
        first += committed
    # leftovers of the killed writers do not hinder later ones
    lance.write_dataset(batch_of(10**6), uri, mode="append")
    assert lance.dataset(uri).version == committed + 1
    print(committed, reported)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
