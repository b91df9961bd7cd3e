"""Tests of compaction of tables with indices while others change the table: no index is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lance as reference
import lance.optimize
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.changes.compaction import committing
from lance_dataset.errors import CommitConflictError
from lance_dataset.optimize import Compaction, RewriteResult

ROWS = 60
FIXTURES = Path(__file__).parents[2] / "fixtures" / "indices"

Change = Callable[[str, Sequence[RewriteResult]], None]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a table of six fragments, which a plan divides into two tasks."""
    data = pa.table({"id": pa.array(range(ROWS), pa.int64()), "word": [f"w{n % 5}" for n in range(ROWS)]})
    reference.write_dataset(data, tmp_path / "t", max_rows_per_file=10)
    dataset = reference.dataset(tmp_path / "t")
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("word", "BITMAP")
    return str(tmp_path / "t")


def executed(dataset: lance_dataset.LanceDataset) -> list[RewriteResult]:
    return [task.execute(dataset) for task in Compaction.plan(dataset, {"target_rows_per_fragment": 30}).tasks]


def drops_an_index(path: str, _: Sequence[RewriteResult]) -> None:
    reference.dataset(path).drop_index("word_idx")


def adds_a_segment(path: str, _: Sequence[RewriteResult]) -> None:
    reference.write_dataset(pa.table({"id": pa.array([100], pa.int64()), "word": ["w9"]}), path, mode="append")
    reference.dataset(path).optimize.optimize_indices(num_indices_to_merge=0)


def updates_a_column(path: str, _: Sequence[RewriteResult]) -> None:
    dataset = reference.dataset(path)
    values = pa.table({"id": pa.array([55], pa.int64()), "word": ["zz"]})
    fragment, fields = dataset.get_fragment(5).update_columns(values, left_on="id", right_on="id")
    update = reference.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    reference.LanceDataset.commit(path, update, read_version=dataset.version)


def compacts_others(path: str, results: Sequence[RewriteResult]) -> None:
    """Commit the other task's result, which rewrites the same indices."""
    Compaction.commit(lance_dataset.dataset(path, version=results[1].read_version), [results[1]])


def they_compact_others(path: str, results: Sequence[RewriteResult]) -> None:
    result = lance.optimize.RewriteResult.from_json(results[1].json())
    lance.optimize.Compaction.commit(reference.dataset(path, version=results[1].read_version), [result])


def merges_segments(path: str, _: Sequence[RewriteResult]) -> None:
    reference.write_dataset(pa.table({"id": pa.array([100], pa.int64()), "word": ["w9"]}), path, mode="append")
    reference.dataset(path).optimize.optimize_indices(num_indices_to_merge=10)


HARMLESS = [adds_a_segment, updates_a_column]
REPLACING = [drops_an_index, compacts_others, they_compact_others]


def index_files(path: str) -> set[str]:
    return {each.name for each in Path(path, "_indices").iterdir()}


def listed(path: str) -> set[str]:
    return {segment.uuid for index in reference.dataset(path).describe_indices() for segment in index.segments}


def assert_covered(path: str, fragment_ids: set[int]) -> None:
    """Check that all indices cover these fragments and give right answers."""
    dataset = reference.dataset(path)
    present = {fragment.fragment_id for fragment in dataset.get_fragments()}
    for index in dataset.describe_indices():
        covered = set().union(*(segment.fragment_ids for segment in index.segments))
        assert fragment_ids <= covered <= present, index.name
    for where in ("id = 17", "id >= 25 AND id < 44", "word = 'w3'", "word IN ('zz', 'w9')"):
        found, right = (
            sorted(dataset.scanner(filter=where, use_scalar_index=use).to_table()["id"].to_pylist())
            for use in (True, False)
        )
        assert found == right


def new_fragment(path: str) -> set[int]:
    """Return the fragment that the first task made."""
    return {each.fragment_id for each in reference.dataset(path).get_fragments() if each.count_rows() == ROWS // 2}


def disturb(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Run a change once, after the indices are rewritten and before that rewrite is committed."""
    real = committing.indices_made_anew

    def disturbed(*given: Any) -> Iterator[Any]:
        yield from real(*given)
        monkeypatch.undo()
        change()

    monkeypatch.setattr(committing, "indices_made_anew", disturbed)


@pytest.mark.parametrize("change", [*HARMLESS, *REPLACING], ids=lambda each: each.__name__)
def test_change_before_the_commit(path: str, change: Change) -> None:
    """A change of other fragments does not disturb the commit: the indices of the newest version are rewritten."""
    dataset = lance_dataset.dataset(path)
    results = executed(dataset)
    change(path, results)
    Compaction.commit(dataset, results[:1])
    assert_covered(path, new_fragment(path))
    assert listed(path) <= index_files(path)


@pytest.mark.parametrize("change", HARMLESS, ids=lambda each: each.__name__)
def test_change_while_indices_are_made(path: str, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_dataset.dataset(path)
    results = executed(dataset)
    disturb(monkeypatch, lambda: change(path, results))
    Compaction.commit(dataset, results[:1])
    assert_covered(path, new_fragment(path))
    assert listed(path) <= index_files(path)


@pytest.mark.parametrize("change", [*REPLACING, merges_segments], ids=lambda each: each.__name__)
def test_replaced_while_indices_are_made(path: str, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacing indices while they are rewritten is a conflict, which leaves no files behind."""
    dataset = lance_dataset.dataset(path)
    results = executed(dataset)
    files = index_files(path)
    disturb(monkeypatch, lambda: change(path, results))
    with pytest.raises(CommitConflictError, match="Retryable"):
        Compaction.commit(dataset, results[:1])
    assert index_files(path) == files | listed(path)
    assert_covered(path, set())
    lance_dataset.dataset(path).optimize.compact_files(target_rows_per_fragment=30)
    assert_covered(path, new_fragment(path))


@pytest.mark.parametrize("release", sorted(each.name for each in FIXTURES.glob("pylance-*")))
def test_an_append_notes_more_of_old_files(release: str, tmp_path: Path) -> None:
    """An append that adds sizes and counts missing in old manifests does not count as a change of the fragments."""
    shutil.copytree(FIXTURES / release, tmp_path / "t")
    path = str(tmp_path / "t")
    dataset = lance_dataset.dataset(path)
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
    reference.write_dataset(reference.dataset(path).to_table().slice(0, 3), path, mode="append")
    Compaction.commit(dataset, results)
    new = max(fragment.fragment_id for fragment in reference.dataset(path).get_fragments())
    indices = reference.dataset(path).describe_indices()
    assert indices
    assert [segment.fragment_ids for index in indices for segment in index.segments] == [{new}] * len(indices)


def test_merged_segments_are_a_conflict(path: str) -> None:
    dataset = lance_dataset.dataset(path)
    results = executed(dataset)
    merges_segments(path, results)
    files, version = index_files(path), reference.dataset(path).version
    with pytest.raises(CommitConflictError):
        Compaction.commit(dataset, results)
    assert index_files(path) == files
    assert reference.dataset(path).version == version
    assert_covered(path, set(range(7)))
