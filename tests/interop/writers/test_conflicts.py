"""Tests of conflicts between two writers: same verdicts as the reference, and the same rows afterwards."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.conflicts import verdicts
from support.conflicts.verdicts import STRICTER, UNSAID, expected

import lance_dataset
from lance_dataset.errors import CommitConflictError
from lance_dataset.io.local import LocalStore
from lance_dataset.table.conflicts import Verdict, find_verdict
from lance_dataset.table.conflicts.key_filter import build_key_filter
from lance_dataset.table.naming import Naming
from lance_dataset.table.operations import KeyFilter, Update
from lance_dataset.table.publish import publish_version
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import read_latest


def test_the_matrix_is_that_of_the_reference(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = Path(verdicts.__file__).with_name("reference_verdicts.py")
    command = [sys.executable, str(program), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {(ours, theirs): verdict for ours, theirs, verdict in json.loads(done.stdout)}
    assert len({ours for ours, _ in found}) == 60
    table = expected()
    wrong = {
        pair: (table[pair], verdict) for pair, verdict in found.items() if verdict != STRICTER.get(pair, table[pair])
    }
    assert not wrong
    assert {ours for ours, _ in STRICTER} <= {ours for ours, _ in found}
    assert not any(ours.startswith(UNSAID) for ours, _ in found)


# -- rows that are known --------------------------------------------------------------------------------------------

Change = Callable[[str, Any], object]


def raw_column_update(path: str, module: Any) -> None:
    """Commit new values for a column of fragment 0, in a separate file."""
    dataset = lance.dataset(path)
    fragment = dataset.get_fragment(0)
    values = pa.table({"_rowid": pa.array(range(10), pa.uint64()), "a": pa.array(range(100, 110), pa.int64())})
    changed, fields = fragment.update_columns(values)
    operation = lance.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    lance.LanceDataset.commit(path, operation, read_version=dataset.version)


def merge(path: str, module: Any) -> None:
    source = pa.table({"id": pa.array([3, 1000], pa.int64()), "a": pa.array([-3, -1000], pa.int64()), "b": ["m", "n"]})
    handle = module.dataset(path).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    handle.execute(source.cast(lance.dataset(path).schema))


def append(path: str, module: Any) -> None:
    data = pa.table({"id": [500], "a": [500], "b": ["x"]}, schema=lance.dataset(path).schema)
    module.write_dataset(data, path, mode="append")


def overwrite(path: str, module: Any) -> None:
    data = pa.table({"id": [500], "a": [500], "b": ["x"]}, schema=lance.dataset(path).schema)
    module.write_dataset(data, path, mode="overwrite")


#: Changes between the read and the commit of a delete of ``id in (2, 3, 12)``, with the verdict.
CHANGES: dict[str, tuple[Change, str]] = {
    "delete of other rows": (lambda path, module: module.dataset(path).delete("id = 4 or id = 15"), "."),
    "delete of a common row": (lambda path, module: module.dataset(path).delete("id = 3"), "R"),
    "delete of a whole fragment": (lambda path, module: module.dataset(path).delete("id < 10"), "R"),
    "delete of another fragment": (lambda path, module: module.dataset(path).delete("id >= 30"), "."),
    "delete of nothing": (lambda path, module: module.dataset(path).delete("false"), "."),
    "append": (append, "."),
    "overwrite": (overwrite, "X"),
    "restore": (lambda path, module: module.dataset(path, version=1).restore(), "X"),
}
CHANGES_OF_THE_REFERENCE: dict[str, tuple[Change, str]] = {
    "update of other rows": (lambda path, module: module.dataset(path).update({"a": "-1"}, "id = 5"), "."),
    "update of a common row": (lambda path, module: module.dataset(path).update({"a": "-1"}, "id = 12"), "R"),
    "update of all rows": (lambda path, module: module.dataset(path).update({"a": "-1"}), "R"),
    "update of columns": (raw_column_update, "R"),
    "merge with a common row": (merge, "R"),
    "compaction": (lambda path, module: module.dataset(path).optimize.compact_files(), "R"),
    "new column": (lambda path, module: module.dataset(path).add_columns({"c": "a + 1"}), "R"),
    "column dropped": (lambda path, module: module.dataset(path).drop_columns(["b"]), "."),
    "column renamed": (lambda path, module: module.dataset(path).alter_columns({"path": "b", "name": "bb"}), "."),
    "config": (lambda path, module: module.dataset(path).update_config({"k": "v"}), "."),
    "index": (lambda path, module: module.dataset(path).create_scalar_index("a", "BTREE"), "."),
}


def make(path: Path, stable: bool) -> str:
    rows = {
        "id": pa.array(range(40), pa.int64()),
        "a": pa.array(range(40), pa.int64()),
        "b": [str(n) for n in range(40)],
    }
    lance.write_dataset(pa.table(rows), str(path), max_rows_per_file=10, enable_stable_row_ids=stable)
    return str(path)


def attempt(dataset: Any, work: Callable[[Any], object]) -> str:
    """Return the verdict on a change that is computed against the version of the handle."""
    try:
        work(dataset)
    except OSError as error:
        if isinstance(error, CommitConflictError):
            return "R" if error.retryable else "X"
        assert not isinstance(dataset, lance_dataset.LanceDataset)
        return "X" if "incompatible with concurrent" in str(error) else "R"
    return "."


def rows_of(path: str) -> list[dict[str, Any]]:
    theirs, ours = lance.dataset(path).to_table(), lance_dataset.dataset(path).to_table()
    assert ours.equals(theirs)
    return theirs.to_pylist()


def delete_again(dataset: Any) -> None:
    dataset.delete("id in (2, 3, 12)", conflict_retries=0)


def deletion_files(path: str) -> set[str]:
    folder = Path(path) / "_deletions"
    return set(os.listdir(folder)) if folder.exists() else set()


def listed(path: str) -> set[str]:
    """Return the deletion files of the newest version."""
    fragments = lance.dataset(path).get_fragments()
    return {Path(file).name for file in (fragment.deletion_file() for fragment in fragments) if file is not None}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("name", [*CHANGES, *CHANGES_OF_THE_REFERENCE])
def test_deletes_after_changes(tmp_path: Path, name: str, stable: bool) -> None:
    change, expected_verdict = (CHANGES | CHANGES_OF_THE_REFERENCE)[name]
    authors = [lance, lance_dataset] if name in CHANGES else [lance]
    original = make(tmp_path / "t", stable)
    for author in authors:
        results = []
        for module in (lance, lance_dataset):
            path = str(tmp_path / f"{author.__name__}-{module.__name__}")
            shutil.copytree(original, path)
            dataset = module.dataset(path)
            change(path, author)
            known = deletion_files(path)
            results.append((attempt(dataset, delete_again), rows_of(path)))
            left = deletion_files(path) - known
            if module is lance_dataset:  # superseded files are removed
                assert left == {name for name in left if name in listed(path)}
        assert results[0] == results[1]
        assert results[1][0] == expected_verdict


#: Changes of the reference after a delete of ``id in (2, 3, 12)`` by either library, with the verdict.
WORK: dict[str, tuple[Callable[[Any], object], str]] = {
    "update of other rows": (lambda ds: ds.update({"a": "-1"}, "id = 5", conflict_retries=0), "."),
    "update of a deleted row": (lambda ds: ds.update({"a": "-1"}, "id = 3", conflict_retries=0), "R"),
    "delete of other rows": (lambda ds: ds.delete("id = 5", conflict_retries=0), "."),
    "delete of a deleted row": (lambda ds: ds.delete("id = 12", conflict_retries=0), "R"),
    "new column": (lambda ds: ds.add_columns({"c": "a + 1"}), "R"),
    "column dropped": (lambda ds: ds.drop_columns(["b"]), "."),
}


@pytest.mark.parametrize("name", list(WORK))
def test_the_reference_after_our_deletes(tmp_path: Path, name: str) -> None:
    work, expected_verdict = WORK[name]
    original = make(tmp_path / "t", False)
    results = []
    for module in (lance, lance_dataset):
        path = str(tmp_path / module.__name__)
        shutil.copytree(original, path)
        dataset = lance.dataset(path)
        module.dataset(path).delete("id in (2, 3, 12)")
        results.append((attempt(dataset, work), rows_of(path)))
    assert results[0] == results[1]
    assert results[1][0] == expected_verdict


# -- keys of merges --------------------------------------------------------------------------------------------------


def keyed(path: Path) -> str:
    field = pa.field("id", pa.int64(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"})
    schema = pa.schema([field, pa.field("a", pa.int64())])
    lance.write_dataset(pa.table([pa.array(range(10)), pa.array(range(10))], schema=schema), str(path))
    return str(path)


def keys(*values: int) -> KeyFilter:
    return build_key_filter((0,), [pa.array(values, pa.int64())])


INSERTS: dict[str, tuple[KeyFilter | None, str]] = {
    "the same key": (keys(1000), "R"),
    "the key among others": (keys(*range(990, 1010)), "R"),
    "other keys": (keys(2000, 2001), "."),
    "no keys": (keys(), "."),
    "exact keys": (KeyFilter((0,), frozenset({1})), "R"),
    "keys of another column": (replace(keys(2000), field_ids=(1,)), "R"),
    "a filter of another size": (KeyFilter((0,), None, bytes(64), 512, 8192, 0.00057), "R"),
    "a filter for other numbers": (replace(keys(2000), number_of_items=100), "R"),
    "unknown keys": (None, "R"),
}


@pytest.mark.parametrize("name", list(INSERTS))
def test_merges_of_the_reference_after_inserts(tmp_path: Path, name: str) -> None:
    """The reference judges the key filters of this package as this package does."""
    theirs, expected_verdict = INSERTS[name]
    path, store = keyed(tmp_path / "t"), LocalStore(fsync=False)
    dataset = lance.dataset(path)
    base = read_latest(store, path)
    assert base is not None
    update = Update(inserted_rows=theirs)
    # The same rows in a new version: only the transactions are compared.
    publish_version(store, path, replace(base, version=2), Transaction(1, update), Naming.V2)
    source = pa.table([pa.array([3, 1000]), pa.array([-3, -4])], schema=dataset.schema)
    merge_insert = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge_insert = merge_insert.conflict_retries(0)
    assert attempt(dataset, lambda _: merge_insert.execute(source)) == expected_verdict
    ours = Update(inserted_rows=keys(1000))
    assert find_verdict(ours, update) is {".": Verdict.COMPATIBLE, "R": Verdict.RETRYABLE}[expected_verdict]
