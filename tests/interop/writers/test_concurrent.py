"""Tests of processes of both implementations that write to one dataset at the same time."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.reference.both_read import assert_both_read
from support.tables.equality import assert_same

import lance_dataset

ROUNDS = 8

WRITER = """
import sys, time
import pyarrow as pa
import lance, lance_dataset

name, path, number, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
module = {"ours": lance_dataset, "reference": lance}[name]
for turn in range(rounds):
    start = 1_000_000 * (number + 1) + 100 * turn
    data = pa.table({"id": pa.array(range(start, start + 10), pa.int64())})
    module.write_dataset(data, path, mode="append")
    # Rows of its own that all share fragments with the rows the others delete.
    for attempt in range(50):
        try:
            module.dataset(path).delete(f"id = {turn * 4 + number} or id = {start + 3}")
            break
        except OSError:
            time.sleep(0.01 * (attempt + 1))
    else:
        sys.exit("the delete never got through")
"""


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_nothing_is_lost(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t"
    table = pa.table({"id": pa.array(range(100), pa.int64())})
    lance_dataset.write_dataset(table, path, max_rows_per_file=50, enable_stable_row_ids=stable)
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    names = ["ours", "reference", "ours", "reference"]
    processes = [
        subprocess.Popen([sys.executable, script, name, path, str(number), str(ROUNDS)], stderr=subprocess.PIPE)
        for number, name in enumerate(names)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors.decode()[-3000:]
    expected = set(range(ROUNDS * 4, 100))
    for number in range(4):
        for turn in range(ROUNDS):
            start = 1_000_000 * (number + 1) + 100 * turn
            expected |= set(range(start, start + 10)) - {start + 3}
    got = assert_both_read(path)["id"].to_pylist()
    assert len(got) == len(set(got))
    assert set(got) == expected
    assert lance.dataset(path).version == 1 + 2 * 4 * ROUNDS


def test_memory_belongs_to_a_session() -> None:
    session = lance_dataset.Session()
    uri = "memory://table"
    table = pa.table({"id": pa.array(range(100), pa.int64()), "s": [f"s{number}" for number in range(100)]})
    lance_dataset.write_dataset(table, uri, session=session, max_rows_per_file=30)
    dataset = lance_dataset.dataset(uri, session=session)
    assert_same(dataset.to_table(), table)
    dataset.delete("id < 10")
    lance_dataset.write_dataset(table.slice(0, 10), uri, mode="append", session=session)
    again = lance_dataset.dataset(uri, session=session)
    assert_same(again.to_table(), pa.concat_tables([table.slice(10), table.slice(0, 10)]))
    assert_same(again.take([0, 99]), pa.concat_tables([table.slice(10, 1), table.slice(9, 1)]))
    assert [entry["version"] for entry in again.versions()] == [1, 2, 3]
    assert_same(lance_dataset.dataset(uri, version=1, session=session).to_table(), table)
    moment = again.versions()[1]["timestamp"] + dt.timedelta(microseconds=1)
    assert lance_dataset.dataset(uri, asof=moment, session=session).version == 2
    assert again.session().is_same_as(session)
    with pytest.raises(lance_dataset.errors.DatasetNotFoundError):
        lance_dataset.dataset(uri, session=lance_dataset.Session())
