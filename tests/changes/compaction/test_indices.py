"""Tests of indices that a compaction rewrites: their entries in the commit, apart from their content."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import lance as reference
import lance.optimize
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CommitConflictError, CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.optimize import Compaction, CompactionTask, RewriteResult

ROWS = 60


def made(path: Path, *kinds: str, stable: bool = False) -> str:
    data = pa.table({"id": pa.array(range(ROWS), pa.int64()), "word": [f"w{n % 5}" for n in range(ROWS)]})
    reference.write_dataset(data, path, max_rows_per_file=10, enable_stable_row_ids=stable)
    for column, kind in zip(("id", "word"), kinds, strict=False):
        reference.dataset(path).create_scalar_index(column, kind)
    return str(path)


def files(path: str) -> set[str]:
    return {str(each.relative_to(path)) for each in Path(path).rglob("*") if each.is_file()}


def lost(before: set[str], after: set[str]) -> set[str]:
    """Return the names of new data and index files."""
    return {name for name in after - before if name.startswith(("data/", "_indices/"))}


def assert_answers(path: str, used: int = 2) -> None:
    """Check that the reference finds the right rows, and uses an index for at least `used` filters."""
    dataset = reference.dataset(path)
    filters = ["id = 17", "id >= 20 AND id < 44", "word = 'w3'", "word IN ('w1', 'w4') OR id = 3"]
    plans = []
    for where in filters:
        scans = [dataset.scanner(filter=where, use_scalar_index=use) for use in (True, False)]
        plans.append(scans[0].explain_plan())
        found, right = (sorted(scan.to_table()["id"].to_pylist()) for scan in scans)
        assert found == right
    assert sum("ScalarIndexQuery" in plan for plan in plans) >= used


@pytest.mark.parametrize("stable", [False, True])
def test_indices_are_used_afterwards(tmp_path: Path, stable: bool) -> None:
    path = made(tmp_path / "t", "BTREE", "BITMAP", stable=stable)
    before = {each["name"]: each["uuid"] for each in reference.dataset(path).list_indices()}
    dataset = lance_dataset.dataset(path)
    dataset.delete("id % 7 = 3")
    assert dataset.optimize.compact_files().fragments_added == 1
    assert_answers(path, used=4)
    after = {each["name"]: each["uuid"] for each in reference.dataset(path).list_indices()}
    assert (before["word_idx"] == after["word_idx"]) == stable  # indices of row ids stay
    assert before["id_idx"] != after["id_idx"]  # indices of addresses are rewritten


def test_only_fragments_that_an_index_covers(tmp_path: Path) -> None:
    path = made(tmp_path / "t", "BTREE", "BITMAP")
    more = pa.table({"id": pa.array(range(100, 130), pa.int64()), "word": ["w1"] * 30})
    reference.write_dataset(more, path, mode="append", max_rows_per_file=10)
    lance_dataset.dataset(path).optimize.compact_files()
    assert [each.count_rows() for each in reference.dataset(path).get_fragments()] == [ROWS, 30]
    assert_answers(path, used=4)


@pytest.mark.parametrize("order", ["wt", "tw", "ww"])
def test_steps_by_either(tmp_path: Path, order: str) -> None:
    """Tasks executed by one library can be committed by the other (w: this package, t: the reference)."""
    path = made(tmp_path / "t", "BTREE", "BITMAP")
    lance_dataset.dataset(path).delete("id % 7 = 3")
    steps: dict[str, Any] = {"w": (lance_dataset, lance_dataset.optimize), "t": (reference, lance.optimize)}
    worker, committer = (steps[each] for each in order)
    plan = Compaction.plan(lance_dataset.dataset(path), {"target_rows_per_fragment": 20})
    tasks = [worker[1].CompactionTask.from_json(task.json()) for task in plan.tasks]
    results = [committer[1].RewriteResult.from_json(task.execute(worker[0].dataset(path)).json()) for task in tasks]
    committer[1].Compaction.commit(committer[0].dataset(path), results)
    assert_answers(path, used=4)


def test_results_that_do_not_say_where_rows_went(tmp_path: Path) -> None:
    path = made(tmp_path / "t", "BTREE")
    dataset = lance_dataset.dataset(path)
    result = Compaction.plan(dataset, {}).tasks[0].execute(dataset)
    silent = RewriteResult.from_json(result.json().replace('"row_addrs":[', '"row_addrs":null,"x":['))
    with pytest.raises(InvalidInputError, match="does not say which rows were written"):
        Compaction.commit(dataset, [silent])
    assert reference.dataset(path).version == dataset.version


def test_after_a_deferred_compaction(tmp_path: Path) -> None:
    """Indices left unchanged by a deferred compaction are updated first by the next one."""
    path = made(tmp_path / "t", "BTREE", "BITMAP")
    dataset = lance_dataset.dataset(path)
    dataset.delete("id % 7 = 3")
    dataset.optimize.compact_files(defer_index_remap=True, target_rows_per_fragment=20)
    assert_answers(path, used=4)
    dataset.delete("id % 7 = 2")
    dataset.optimize.compact_files()
    assert len(reference.dataset(path).get_fragments()) == 1
    assert_answers(path, used=4)


def test_all_rows_are_gone(tmp_path: Path) -> None:
    path = made(tmp_path / "t", "BTREE", "BITMAP")
    dataset = lance_dataset.dataset(path)
    dataset.delete("true")
    dataset.optimize.compact_files()
    reference.write_dataset(pa.table({"id": [3], "word": ["w3"]}), path, mode="append")
    assert_answers(path, used=0)
    reference.dataset(path).optimize.optimize_indices()
    assert_answers(path, used=4)


def test_a_shallow_clone(tmp_path: Path) -> None:
    """Compacting a shallow clone writes the clone's own indices; those it had are files of another table."""
    path, clone = made(tmp_path / "t", "BTREE", "BITMAP"), str(tmp_path / "clone")
    reference.dataset(path).shallow_clone(clone, 3)
    before = files(path)
    dataset = lance_dataset.dataset(clone)
    dataset.delete("id % 7 = 3")
    dataset.optimize.compact_files()
    assert files(path) == before
    assert_answers(clone, used=4)
    assert_answers(path, used=4)


def test_an_index_is_made_meanwhile(tmp_path: Path) -> None:
    path = made(tmp_path / "t", "BTREE")
    dataset = lance_dataset.dataset(path)
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
    before = files(path)
    reference.dataset(path).create_scalar_index("word", "BITMAP")
    indices = {name for name in files(path) - before if name.startswith("_indices/")}
    with pytest.raises(CommitConflictError):
        Compaction.commit(dataset, results)
    assert lost(before, files(path)) == indices
    assert_answers(path)


def test_rows_are_deleted_meanwhile(tmp_path: Path) -> None:
    path = made(tmp_path / "t", "BTREE")
    dataset = lance_dataset.dataset(path)
    task = CompactionTask.from_json(Compaction.plan(dataset, {}).tasks[0].json())
    result = task.execute(dataset)
    before = files(path)
    reference.dataset(path).delete("id = 5")
    with pytest.raises(CommitConflictError):
        Compaction.commit(dataset, [result])
    assert not lost(before, files(path))


def test_a_damaged_index_stops_it(tmp_path: Path) -> None:
    path = made(tmp_path / "t", "BTREE", "BITMAP")
    damaged = next(Path(path).rglob("bitmap_page_lookup.lance"))
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    before = files(path)
    dataset = lance_dataset.dataset(path)
    with pytest.raises(CorruptFileError, match="bitmap_page_lookup"):
        dataset.optimize.compact_files()
    assert not lost(before, files(path))
    assert dataset.to_table()["id"].to_pylist() == list(range(ROWS))
    damaged.write_bytes(content)
    dataset.optimize.compact_files()
    assert_answers(path, used=4)


def test_old_indices_are_cleaned_up(tmp_path: Path) -> None:
    """Replaced indices are removed together with the versions that listed them, including their folders."""
    path = made(tmp_path / "t", "BTREE", "BITMAP")
    dataset = lance_dataset.dataset(path)
    for divisor in (7, 8, 9):
        dataset.delete(f"id % {divisor} = 3")
        dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
    assert len(list(Path(path, "_indices").iterdir())) == 8
    dataset.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)
    left = {each["uuid"] for each in reference.dataset(path).list_indices()}
    assert {each.name for each in Path(path, "_indices").iterdir()} == left
    assert_answers(path, used=4)


@pytest.mark.parametrize(
    ("url", "version"), [("/lance.table.OtherIndexDetails", 0), ("/lance.table.BTreeIndexDetails", 7)]
)
def test_unknown_indices_are_refused(tmp_path: Path, url: str, version: int) -> None:
    path = made(tmp_path / "t")
    dataset = lance_dataset.dataset(path)
    unknown = lance_dataset.Index(
        str(uuid.uuid4()), "mine", [0], dataset.version, set(range(6)), version, index_details=(url, b"")
    )
    operation = lance_dataset.LanceOperation.CreateIndex([unknown], [])
    dataset = lance_dataset.LanceDataset.commit(path, operation, read_version=dataset.version)
    before = files(path)
    with pytest.raises(UnsupportedError, match=r"'mine'.*defer_index_remap"):
        dataset.optimize.compact_files()
    assert files(path) == before
    assert dataset.optimize.compact_files(defer_index_remap=True).fragments_added == 1
