"""Tests of alternating writes of both implementations to one dataset; after every step both read the same."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.arrays.random_arrays import random_table
from support.reference.both_read import assert_both_read
from support.tables.equality import assert_same

import lance_dataset

KINDS = {
    "s": pa.string(),
    "l": pa.list_(pa.int32()),
    "st": pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
    "v": pa.list_(pa.int16(), 4),
    "d": pa.dictionary(pa.int16(), pa.string()),
}
MODULES = {"ours": lance_dataset, "reference": lance}


def rows(start: int, count: int) -> pa.Table:
    """Return rows with ids from `start` on."""
    table = random_table(KINDS, count, 0.2, seed=start)
    return table.add_column(0, "id", pa.array(range(start, start + count), pa.int64()))


def without(table: pa.Table, ids: Any) -> pa.Table:
    return table.filter(~np.isin(table["id"].to_numpy(), ids))


def write(who: str, data: pa.Table, path: Path, mode: str, **options: Any) -> None:
    MODULES[who].write_dataset(data, path, mode=mode, data_storage_version="2.0", **options)


def delete(who: str, path: Path, predicate: str) -> None:
    MODULES[who].dataset(path).delete(predicate)


CREATE_OPTIONS = {
    "plain": {},
    "stable_row_ids": {"enable_stable_row_ids": True},
    "v1_manifest_names": {"enable_v2_manifest_paths": False},
}


@pytest.mark.parametrize("options", CREATE_OPTIONS)
@pytest.mark.parametrize("creator", MODULES)
def test_turns(tmp_path: Path, creator: str, options: str) -> None:
    path = tmp_path / "t"
    expected = rows(0, 20_000)
    write(creator, expected, path, "create", max_rows_per_file=15_000, **CREATE_OPTIONS[options])
    assert_both_read(path, expected)
    names = {entry.name for entry in (path / "_versions").glob("*.manifest")}
    assert (names == {"1.manifest"}) == (options == "v1_manifest_names")
    order = ["ours", "reference"] if creator == "reference" else ["reference", "ours"]
    history = {1: expected}
    start = 20_000

    def done() -> None:
        assert_both_read(path, expected, seed=start)
        history[lance.dataset(path).version] = expected

    for turn in range(10):
        who, other = order[turn % 2], order[(turn + 1) % 2]
        write(who, added := rows(start, 300 + turn), path, "append")
        expected = pa.concat_tables([expected, added])
        start += added.num_rows
        done()
        few = expected["id"].to_numpy()[turn::1_900]
        delete(other, path, f"id in ({', '.join(map(str, few))})")
        expected = without(expected, few)
        done()
        if turn in (2, 5):  # more rows of a fragment than an array file holds, by each library
            many = np.arange(turn * 2_000, turn * 2_000 + 5_600)
            delete(who, path, f"id >= {many[0]} and id <= {many[-1]}")
            expected = without(expected, many)
            done()
        if turn in (6, 7):
            write(who, added := rows(start, 11_000), path, "overwrite")
            expected, start = added, start + added.num_rows
            done()
        if turn in (8, 9):
            version = 4 + turn
            MODULES[who].dataset(path, version=version).restore()
            expected = history[version]
            done()
    kinds = {file.suffix for file in (path / "_deletions").iterdir()}
    assert kinds == {".arrow", ".bin"}
    for version, table in history.items():
        for module in MODULES.values():
            old = module.dataset(path, version=version)
            assert_same(old.to_table(), table)
            assert old.count_rows() == table.num_rows
    names = [entry.name for entry in (path / "_versions").glob("*.manifest")]
    assert len(names) == max(history)
    assert all((len(name) < len("00000000000000000001.manifest")) == (options == "v1_manifest_names") for name in names)


@pytest.mark.parametrize("who", MODULES)
def test_whole_fragments_go_and_come_back(tmp_path: Path, who: str) -> None:
    path = tmp_path / "t"
    other = "ours" if who == "reference" else "reference"
    write(who, rows(0, 100), path, "create", max_rows_per_file=10)
    delete(other, path, "id >= 20 and id < 50")
    assert_both_read(path, without(rows(0, 100), np.arange(20, 50)))
    delete(who, path, "true")
    assert_both_read(path, rows(0, 0))
    write(other, rows(200, 7), path, "append")
    assert_both_read(path, rows(200, 7))
    write(who, rows(300, 7), path, "append")
    assert_both_read(path, pa.concat_tables([rows(200, 7), rows(300, 7)]))


def test_time_travel(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for turn, who in enumerate(["ours", "reference", "ours", "reference"]):
        write(who, rows(10 * turn, 10), path, "append")
    entries = lance.dataset(path).versions()
    for entry in entries:
        moment = entry["timestamp"] + dt.timedelta(microseconds=2)
        ours, theirs = lance_dataset.dataset(path, asof=moment), lance.dataset(path, asof=moment)
        assert ours.version == theirs.version == entry["version"]
        assert_same(ours.to_table(), theirs.to_table())
    early = entries[0]["timestamp"].replace(year=2001)
    for module in MODULES.values():
        with pytest.raises(ValueError):
            module.dataset(path, asof=early)
