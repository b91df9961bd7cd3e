"""Tests of commits of this package that the reference reads and extends, and the other way round."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError as LanceConflict

from lance_dataset.errors import CommitConflictError
from lance_dataset.io.local import LocalStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.deletions import read_deletions, write_deletions
from lance_dataset.table.manifest import Manifest, read_manifest
from lance_dataset.table.operations import (
    Append,
    Delete,
    Operation,
    Overwrite,
    Restore,
)
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Transaction, read_transaction
from lance_dataset.table.versions import latest_version, locate_version

STORE = LocalStore(fsync=False)


def latest(root: str) -> Manifest:
    return read_manifest(STORE, locate_version(STORE, root, latest_version(STORE, root).version))


def commit(root: str, read_version: int, operation: Operation) -> Manifest:
    return commit_transaction(STORE, root, Transaction(read_version, operation))


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Write a table of two fragments with 10 rows each with the reference."""
    root = f"{tmp_path}/source"
    table = pa.table({"a": range(20), "s": [f"s{i}" for i in range(20)]})
    lance.write_dataset(table, root, max_rows_per_file=10, data_storage_version="2.0")
    return root


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def copied(request: pytest.FixtureRequest, source: str, tmp_path: Path) -> str:
    """Copy the data files of the source and write a manifest of this package."""
    root = f"{tmp_path}/copied"
    transaction = read_transaction(STORE, source, latest(source))
    assert transaction is not None
    shutil.copytree(f"{source}/data", f"{root}/data")
    create_table(STORE, root, Transaction(0, transaction.operation), enable_stable_row_ids=request.param)
    return root


def test_every_version_is_read(copied: str) -> None:
    first = latest(copied)
    commit(copied, 1, Append(tuple(replace(item, id=0) for item in unlined(first))))
    file = write_deletions(STORE, copied, 1, 2, [0, 9])
    commit(copied, 2, Delete((replace(first.fragments[1], deletion_file=file),), (0,), "x"))
    commit(copied, 3, Overwrite(first.schema, unlined(first)[:1], {"k": "v"}))
    commit(copied, 4, Restore(3))
    ten, twenty = list(range(10)), list(range(20))
    kept = list(range(11, 19))
    expected = {1: twenty, 2: twenty + twenty, 3: kept + twenty, 4: ten, 5: kept + twenty}
    for version, values in expected.items():
        dataset = lance.dataset(copied, version=version)
        assert dataset.to_table()["a"].to_pylist() == values
        assert dataset.count_rows() == len(values)
    assert lance.dataset(copied, version=4).config() == {"k": "v"}
    hint = json.loads(Path(copied, "_versions", "latest_version_hint.json").read_text())
    assert hint == {"version": 5}


def unlined(manifest: Manifest) -> tuple:
    """Return the fragments as a writer passes them: without row lineage."""
    return tuple(
        replace(item, id=0, row_ids=None, created_at_versions=None, last_updated_at_versions=None)
        for item in manifest.fragments
    )


def test_row_lineage(copied: str) -> None:
    first = latest(copied)
    commit(copied, 1, Append(unlined(first)[:1]))
    columns = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    dataset = lance.dataset(copied)
    if not first.uses_stable_row_ids:
        assert dataset.to_table(columns=["_rowid"])["_rowid"].to_pylist()[-1] == (2 << 32) + 9
        return
    rows = dataset.to_table(columns=columns).to_pydict()
    assert rows["_rowid"] == list(range(30))
    assert rows["_row_created_at_version"] == [1] * 20 + [2] * 10
    assert rows["_row_last_updated_at_version"] == rows["_row_created_at_version"]


def test_the_reference_builds_on_it(copied: str) -> None:
    first = latest(copied)
    file = write_deletions(STORE, copied, 0, 1, [0])
    commit(copied, 1, Delete((replace(first.fragments[0], deletion_file=file),)))
    lance.dataset(copied).delete("a = 1")
    dataset = lance.write_dataset(pa.table({"a": [100], "s": ["x"]}), copied, mode="append")
    dataset.create_scalar_index("a", "BTREE")
    manifest = latest(copied)
    assert manifest.num_rows == 19
    assert manifest.index_section
    after = commit(copied, manifest.version, Append(unlined(first)[:1]))
    dataset = lance.dataset(copied)
    assert dataset.to_table(filter="a = 5")["a"].to_pylist() == [5, 5]
    assert [index.name for index in dataset.describe_indices()] == ["a_idx"]
    dataset.optimize.compact_files()
    dataset.optimize.optimize_indices()
    assert lance.dataset(copied).count_rows(filter="a = 5") == 2
    assert latest(copied).num_rows == after.num_rows == 29


@pytest.mark.parametrize("count", [5_000, 5_001])
def test_deletion_files(tmp_path: Path, count: int) -> None:
    root = f"{tmp_path}/t"
    lance.write_dataset(pa.table({"a": range(20_000)}), root)
    offsets = np.random.default_rng(1).permutation(20_000)[:count]
    file = write_deletions(STORE, root, 0, 1, offsets)
    commit(root, 1, Delete((replace(latest(root).fragments[0], deletion_file=file),)))
    dataset = lance.dataset(root)
    assert dataset.to_table()["a"].to_pylist() == sorted(set(range(20_000)) - set(offsets.tolist()))
    dataset.delete("a < 100")
    ours = read_deletions(FileLocator(STORE, root), latest(root).fragments[0])
    assert set(ours.tolist()) == set(offsets.tolist()) | set(range(100))


def test_both_append_at_the_same_time(source: str) -> None:
    new = unlined(latest(source))[:1]

    def ours(_: int) -> None:
        commit(source, latest_version(STORE, source).version, Append(new))

    def theirs(number: int) -> None:
        lance.write_dataset(pa.table({"a": [1000 + number], "s": ["x"]}), source, mode="append")

    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(action, number) for number in range(8) for action in (ours, theirs)]
        for task in tasks:
            task.result()
    assert latest(source).version == 17
    values = lance.dataset(source).to_table()["a"].to_pylist()
    assert sorted(values) == sorted([*range(20), *list(range(10)) * 8, *range(1000, 1008)])


# -- conflicts: the reference says what is right ---------------------------------------------------------------------


def _update(dataset: lance.LanceDataset) -> None:
    dataset.update({"s": "'x'"}, where="a = 3")


def _compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files()


THEIRS: dict[str, Callable[[lance.LanceDataset], object]] = {
    "append": lambda d: lance.write_dataset(pa.table({"a": [1], "s": ["x"]}), d.uri, mode="append"),
    "delete same fragment": lambda d: d.delete("a = 3"),
    "delete other fragment": lambda d: d.delete("a = 13"),
    "delete whole fragment": lambda d: d.delete("a < 10"),
    "update": _update,
    "overwrite": lambda d: lance.write_dataset(d.to_table(), d.uri, mode="overwrite"),
    "create index": lambda d: d.create_scalar_index("a", "BTREE"),
    "compact": _compact,
    "add columns": lambda d: d.add_columns({"b": "a + 1"}),
    "drop columns": lambda d: d.drop_columns(["s"]),
    "rename": lambda d: d.alter_columns({"path": "s", "name": "t"}),
    "restore": lambda d: d.restore(),
    "config": lambda d: d.update_config({"k": "v"}),
    "schema metadata": lambda d: d.update_schema_metadata({"k": "v"}),
    "table metadata": lambda d: d.update_metadata({"k": "v"}),
}


def _our_operations(root: str) -> dict[str, tuple[Operation, lance.LanceOperation.BaseOperation]]:
    dataset, manifest = lance.dataset(root), latest(root)
    file = write_deletions(STORE, root, 0, 1, [7])
    changed = replace(manifest.fragments[0], deletion_file=file)
    theirs = dataset.get_fragments()[0].delete("a = 7")
    new_metadata = lance.fragment.write_fragments(pa.table({"a": [1], "s": ["x"]}), root, data_storage_version="2.0")
    new = replace(manifest.fragments[1], id=0)
    return {
        "Append": (Append((new,)), lance.LanceOperation.Append(new_metadata)),
        "Delete": (Delete((changed,), (), "x"), lance.LanceOperation.Delete([theirs], [], "x")),
        "DeleteFragment": (Delete((), (0,), "x"), lance.LanceOperation.Delete([], [0], "x")),
        "Overwrite": (
            Overwrite(manifest.schema, (new,)),
            lance.LanceOperation.Overwrite(dataset.schema, new_metadata),
        ),
        "Restore": (Restore(1), lance.LanceOperation.Restore(1)),
    }


def _outcome(action: Callable[[], object]) -> str:
    try:
        action()
    except CommitConflictError as error:
        return "retryable" if error.retryable else "incompatible"
    except LanceConflict as error:
        return "retryable" if error.retryable else "incompatible"
    return "committed"


@pytest.mark.parametrize("theirs", THEIRS)
def test_conflicts_are_those_of_the_reference(source: str, tmp_path: Path, theirs: str) -> None:
    base = latest(source).version
    operations = _our_operations(source)
    before = f"{tmp_path}/before"
    THEIRS[theirs](lance.dataset(source))
    shutil.copytree(source, before)
    outcomes = {}
    for name, (ours, reference) in operations.items():
        for root in (source, f"{tmp_path}/reference"):
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(before, root)
        mine = _outcome(lambda: commit(source, base, ours))  # noqa: B023
        oracle = _outcome(
            lambda: lance.LanceDataset.commit(f"{tmp_path}/reference", reference, read_version=base)  # noqa: B023
        )
        outcomes[name] = (mine, oracle)
        if mine == "committed":
            lance.dataset(source).to_table()
    assert all(mine == oracle for mine, oracle in outcomes.values()), outcomes
