"""Tests of every change on tables of old releases: rows match the reference, and both libraries read the result.

``LANCE_STRESS=1`` tries every change on every release, instead of every other one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.releases.old_tables import DATASETS, STABLE_RELEASES, copied
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import LanceError

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
Change = Callable[[Any], object]


def _new_rows(dataset: Any) -> pa.Table:
    """Return some rows of the table with changed values, followed by the same rows with new keys."""
    known = dataset.to_table(filter="id % 50 = 3")
    column = known.schema.get_field_index("int32")
    changed = known.set_column(column, "int32", pc.add(known["int32"], 1))
    return pa.concat_tables([changed, changed.set_column(0, "id", pc.add(known["id"], 100_000))])


def _merge(dataset: Any) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(_new_rows(dataset))


def _merge_of_a_column(dataset: Any) -> None:
    dataset.merge_insert("id").when_matched_update_all().execute(_new_rows(dataset).select(["id", "int32"]))


CHANGES: dict[str, Change] = {
    "update": lambda dataset: dataset.update({"int32": "int32 + 1", "str": "'new'"}, "id % 7 = 3"),
    "update of all rows": lambda dataset: dataset.update({"null_f64": "f64"}),
    "merge": _merge,
    "merge of a column": _merge_of_a_column,
    "new columns": lambda dataset: dataset.add_columns({"twice": "id * 2", "text": "concat(str, '!')"}),
    "new column of nulls": lambda dataset: dataset.add_columns(pa.schema([("none", pa.list_(pa.string()))])),
    "join": lambda dataset: dataset.merge(pa.table({"id": [3, 5, 7], "more": ["a", "b", "c"]}), "id"),
    "cast": lambda dataset: dataset.alter_columns({"path": "int32", "data_type": pa.int64()}),
    "rename": lambda dataset: dataset.alter_columns({"path": "struct.x", "name": "z"}, {"path": "str", "name": "s"}),
    "drop": lambda dataset: dataset.drop_columns(["list_str", "struct.s", "id"]),
    "compaction": lambda dataset: dataset.optimize.compact_files(target_rows_per_fragment=400),
    "compaction to 2.2": lambda dataset: dataset.optimize.compact_files(data_storage_version="2.2"),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder for the tables, in memory if possible, as there are many."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as path:
        yield Path(path)


def attempt(change: Change, dataset: Any) -> Exception | None:
    try:
        change(dataset)
    except Exception as error:
        return error
    return None


def content(path: str) -> pa.Table:
    """Return the rows in any order, after checking that both libraries read the same."""
    table = lance.dataset(path).to_table()
    dataset = lance_dataset.dataset(path)
    assert_same(dataset.to_table(), table)
    dataset.validate()
    return table


@pytest.mark.parametrize("release", STABLE_RELEASES)
def test_every_change(folder: Path, release: str) -> None:
    wrong = {}
    every = list(CHANGES.items())
    for name, change in every if THOROUGH else every[STABLE_RELEASES.index(release) % 2 :: 2]:
        theirs, ours = (copied(DATASETS / release / "ds.lance", folder / f"{name} {who}") for who in ("theirs", "ours"))
        before = lance.dataset(ours).version
        refused = attempt(change, lance.dataset(theirs)), attempt(change, lance_dataset.dataset(ours))
        if refused[1] is not None:
            assert isinstance(refused[1], LanceError), name
            assert lance_dataset.dataset(ours).version == before
            content(ours)
        if refused[0] is None and refused[1] is None:
            found, expected = content(ours), content(theirs)
            assert found.schema == expected.schema, name
            if not found.equals(expected):
                assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist())), name
        elif refused[1] is None:
            content(ours)
        elif refused[0] is None:
            wrong[name] = refused[1]
    assert not wrong
