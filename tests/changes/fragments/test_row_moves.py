"""Tests of moved rows: rows that stay, masked rows, and clean-up after a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.changes.fragments.row_moves import commit_row_moves, discard_row_moves, prepare_row_moves
from lance_dataset.errors import CommitConflictError, InvalidInputError, LanceError, SchemaError
from lance_dataset.threads.tasks import Background


def table(path: Path, *, rows: int = 30, **options: object) -> lance_dataset.LanceDataset:
    """Write three fragments of ten rows."""
    data = pa.table({"a": pa.array(range(rows), pa.int64()), "s": [f"text {n}" for n in range(rows)]})
    return lance_dataset.write_dataset(data, path, max_rows_per_file=10, **options)  # type: ignore[arg-type]


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def new_rows(*values: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"a": pa.array(values, pa.int64()), "s": [f"new {n}" for n in values]})] if values else []


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_moved_and_added_rows(tmp_path: Path, version: str, stable: bool) -> None:
    path = tmp_path / "d"
    dataset = table(path, data_storage_version=version, enable_stable_row_ids=stable)
    masked = {0: np.array([1, 3]), 1: np.arange(10), 2: np.array([], np.int64)}
    ids = np.array([3, 1, 15], np.uint64)
    moves = prepare_row_moves(dataset.snapshot, masked, None, new_rows(103, 101, 115, 200, 201), ids, fields=[0])
    assert moves.operation.removed_fragment_ids == (1,)
    assert [fragment.id for fragment in moves.operation.updated_fragments] == [0]
    made = commit_row_moves(dataset.snapshot, moves)
    assert made.version == 2
    for library in (lance, lance_dataset):
        found = library.dataset(path)
        found.validate()
        left = [n for n in range(30) if n not in (1, 3) and not 10 <= n < 20]
        assert found.to_table()["a"].to_pylist() == [*left, 103, 101, 115, 200, 201]
        if stable:
            read = found.to_table(columns=["_rowid", "_row_created_at_version", "_row_last_updated_at_version"])
            assert read["_rowid"].to_pylist() == [*left, 3, 1, 15, 30, 31]
            assert read["_row_created_at_version"].to_pylist() == [1] * 18 + [1, 1, 1, 2, 2]
            assert read["_row_last_updated_at_version"].to_pylist() == [1] * 18 + [2] * 5


def test_ids_are_cut_to_fragments(tmp_path: Path) -> None:
    """Moved row ids are divided over fragments of 1024 * 1024 rows; rows after the last moved id get new ids."""
    rows = (1 << 20) + 5
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(
        pa.table({"a": np.arange(rows)}), path, enable_stable_row_ids=True, max_rows_per_file=1 << 21
    )
    more = np.arange(rows + (1 << 20)) + 7
    ids = np.arange(rows, dtype=np.uint64)[::-1]
    moves = prepare_row_moves(
        dataset.snapshot, {0: np.arange(rows)}, None, [pa.record_batch({"a": more})], ids, fields=[0]
    )
    commit_row_moves(dataset.snapshot, moves)
    for library in (lance, lance_dataset):
        found = library.dataset(path).to_table(columns=["_rowid"])["_rowid"].to_numpy()
        assert (found == np.concatenate([ids, np.arange(rows, len(more), dtype=np.uint64)])).all()


def test_only_masked_and_only_added(tmp_path: Path) -> None:
    path = tmp_path / "d"
    dataset = table(path)
    dataset.show(
        commit_row_moves(
            dataset.snapshot, prepare_row_moves(dataset.snapshot, {0: np.array([0])}, None, [], None, fields=[])
        )
    )
    assert len(dataset.get_fragments()) == 3
    dataset.show(
        commit_row_moves(dataset.snapshot, prepare_row_moves(dataset.snapshot, {}, None, new_rows(5), None, fields=[]))
    )
    assert lance.dataset(path).to_table()["a"].to_pylist() == [*range(1, 30), 5]
    dataset.show(commit_row_moves(dataset.snapshot, prepare_row_moves(dataset.snapshot, {}, None, [], None, fields=[])))
    assert dataset.version == 4


def test_masks_are_looked_at_last(tmp_path: Path) -> None:
    dataset = table(tmp_path / "d", enable_stable_row_ids=True)
    masked: dict[int, np.ndarray] = {}
    ids: list[int] = []

    def batches() -> object:
        yield from new_rows(100)
        masked[2] = np.array([4])
        ids.append(24)

    made = prepare_row_moves(dataset.snapshot, masked, None, batches(), lambda: np.array(ids, np.uint64), fields=[0])  # type: ignore[arg-type]
    dataset.show(commit_row_moves(dataset.snapshot, made))
    assert dataset.to_table(columns=["a", "_rowid"]).slice(29).to_pylist() == [{"a": 100, "_rowid": 24}]


def test_nothing_is_left_over(tmp_path: Path) -> None:
    """No file is left if the rows fail, the masks fail, another writer was faster, or the moves are discarded."""
    path = tmp_path / "d"
    dataset = table(path)
    before = files(path)

    def failing() -> object:
        yield from new_rows(1)
        raise KeyError("source")

    with pytest.raises(KeyError):
        prepare_row_moves(dataset.snapshot, {0: np.array([0])}, None, failing(), None, fields=[])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="fragment 7"):
        prepare_row_moves(dataset.snapshot, {0: np.array([0]), 7: np.array([0])}, None, new_rows(1), None, fields=[])
    with pytest.raises(InvalidInputError, match=r"0\.1"):
        prepare_row_moves(dataset.snapshot, {}, None, new_rows(1), None, fields=[], storage_version="legacy")
    discard_row_moves(
        dataset.snapshot, prepare_row_moves(dataset.snapshot, {0: np.array([0])}, None, new_rows(1), None, fields=[])
    )
    assert files(path) == before
    moves = prepare_row_moves(
        dataset.snapshot, {0: np.array([0, 1]), 1: np.array([5])}, None, new_rows(1), None, fields=[]
    )
    lance_dataset.dataset(path).delete("a = 1")
    with pytest.raises(CommitConflictError) as caught:
        commit_row_moves(dataset.snapshot, moves)
    assert caught.value.retryable
    assert {name for name in files(path) if name.startswith("data/")} == {
        name for name in before if name.startswith("data/")
    }
    assert len([name for name in files(path) if name.startswith("_deletions/")]) == 1


def test_rebased_on_another_delete(tmp_path: Path) -> None:
    """Row moves are rebased on a delete of other rows of the same fragment, and the unused deletion file is removed."""
    path = tmp_path / "d"
    dataset = table(path)
    moves = prepare_row_moves(dataset.snapshot, {0: np.array([0, 1])}, None, new_rows(100, 101), None, fields=[])
    lance_dataset.dataset(path).delete("a = 5")
    assert commit_row_moves(dataset.snapshot, moves).version == 3
    assert lance.dataset(path).to_table()["a"].to_pylist() == [2, 3, 4, *range(6, 30), 100, 101]
    assert len([name for name in files(path) if name.startswith("_deletions/")]) == 2


def test_commit_whose_fate_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a committed version stay, even if the commit call was interrupted."""
    path = tmp_path / "d"
    dataset = table(path)
    moves = prepare_row_moves(dataset.snapshot, {0: np.array([0])}, None, new_rows(100), None, fields=[])
    from lance_dataset.changes import commit

    real = commit.commit_transaction

    def interrupted(*given: object, **options: object) -> object:
        real(*given, **options)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(commit, "commit_transaction", interrupted)
    with pytest.raises(KeyboardInterrupt):
        commit_row_moves(dataset.snapshot, moves)
    assert lance.dataset(path).to_table()["a"].to_pylist() == [*range(1, 30), 100]


@pytest.mark.parametrize("where", ["start", "__exit__"])
def test_interrupts_around_the_masks_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    path = tmp_path / "d"
    dataset = table(path)
    before = files(path)
    real = getattr(Background, where)

    def interrupted(background: Background, *given: Any) -> None:
        real(background, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Background, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare_row_moves(dataset.snapshot, {0: np.array([1]), 1: np.array([2])}, None, new_rows(100), None, fields=[])
    assert files(path) == before


def test_legacy_dictionaries(tmp_path: Path) -> None:
    """A legacy dictionary column accepts the values of the table's dictionary only."""
    path = tmp_path / "d"
    data = pa.table({"d": pa.array(["x", "y", "x"]).dictionary_encode()})
    dataset = lance_dataset.write_dataset(data, path, data_storage_version="0.1")
    before = files(path)

    def batch(value: str) -> list[pa.RecordBatch]:
        return pa.table({"d": pa.array([value]).dictionary_encode()}).to_batches()

    with pytest.raises((SchemaError, LanceError)):
        prepare_row_moves(dataset.snapshot, {0: np.array([0])}, None, batch("new"), None, fields=[0])
    assert files(path) == before
    dataset.show(
        commit_row_moves(
            dataset.snapshot,
            prepare_row_moves(dataset.snapshot, {0: np.array([0])}, None, batch("y"), None, fields=[0]),
        )
    )
    assert lance.dataset(path).to_table()["d"].to_pylist() == ["y", "x", "y"]


def test_too_many_ids(tmp_path: Path) -> None:
    dataset = table(tmp_path / "d", enable_stable_row_ids=True)
    before = files(tmp_path)
    with pytest.raises(InvalidInputError, match="should move"):
        prepare_row_moves(dataset.snapshot, {}, None, new_rows(1), np.array([1, 2], np.uint64), fields=[])
    assert files(tmp_path) == before
