"""Sessions of datasets that are opened again."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import LanceError
from lance_dataset.read import recent_sessions
from lance_dataset.read.recent_sessions import forget_recent_sessions


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    dataset = lance_dataset.write_dataset(pa.table({"k": range(5000)}), tmp_path / "t")
    dataset.create_scalar_index("k", "BTREE")
    forget_recent_sessions()
    yield tmp_path / "t"
    forget_recent_sessions()


def _used(path: Path) -> object:
    """Open a dataset, use its index, close it, and return its reader."""
    dataset = lance_dataset.dataset(path)
    assert dataset.scanner(filter="k = 7", fast_search=True).count_rows() == 1
    return dataset.snapshot.reader


def test_the_next_handle_gets_what_the_last_one_knew(path: Path) -> None:
    assert _used(path) is lance_dataset.dataset(path).snapshot.reader


def test_nothing_is_kept_of_a_collected_cycle(path: Path) -> None:
    """The collector has cleared the references from indices to readers, without which the indices are of no use."""
    dataset = lance_dataset.dataset(path)
    assert dataset.scanner(filter="k = 7", fast_search=True).count_rows() == 1
    cycle: list[object] = [dataset]
    cycle.append(cycle)
    del dataset, cycle
    gc.collect()
    assert not recent_sessions._ended
    _used(path)


def test_counts_start_anew(path: Path) -> None:
    _used(path)
    dataset = lance_dataset.dataset(path)
    assert dataset.snapshot.store.statistics.snapshot().read_bytes < 3000
    assert dataset.session().cache_stats().misses == 0


def test_limits_of_memory_are_those_of_the_next_handle(path: Path) -> None:
    """A limit of memory of the last handle does not count, but one of the next handle does."""
    with lance_dataset.limited_memory(512 << 20):
        _used(path)
    assert recent_sessions._ended
    usual = lance_dataset.Session().cache_stats().max_bytes
    assert lance_dataset.dataset(path).session().cache_stats().max_bytes == usual
    _used(path)
    with lance_dataset.limited_memory(512 << 20):
        assert lance_dataset.dataset(path).session().cache_stats().max_bytes == 32 << 20


def test_two_handles_at_a_time_share_nothing(path: Path) -> None:
    dataset = lance_dataset.dataset(path)
    dataset.scanner(filter="k = 7", fast_search=True).count_rows()
    other = lance_dataset.dataset(path)
    assert other.snapshot.reader is not dataset.snapshot.reader
    assert not other.session().is_same_as(dataset.session())


@pytest.mark.parametrize("options", [{"storage_options": {"x": "y"}}, {"max_result_bytes": 1 << 30}], ids=str)
def test_other_options_get_nothing(path: Path, options: dict[str, object]) -> None:
    reader = _used(path)
    assert lance_dataset.dataset(path, **options).snapshot.reader is not reader


@pytest.mark.parametrize("what", ["data", "index"])
@pytest.mark.parametrize("change", ["rewritten", "replaced", "gone"])
def test_changed_files_are_opened_again(path: Path, what: str, change: str) -> None:
    reader = _used(path)
    folder = path / ("data" if what == "data" else "_indices")
    file = max(folder.rglob("*.lance"), key=lambda each: each.stat().st_size)
    content = bytes(file.stat().st_size)
    if change == "rewritten":
        file.write_bytes(content)
    else:
        file.unlink()
        if change == "replaced":
            file.write_bytes(content)
    dataset = lance_dataset.dataset(path)
    assert dataset.snapshot.reader is not reader
    with pytest.raises(LanceError):
        dataset.to_table(filter="k = 8", fast_search=True)


def test_another_table_at_the_same_place(path: Path) -> None:
    reader = _used(path)
    shutil.rmtree(path)
    dataset = lance_dataset.write_dataset(pa.table({"k": [7, 7, 7]}), path)
    dataset.create_scalar_index("k", "BTREE")
    found = lance_dataset.dataset(path)
    assert found.snapshot.reader is not reader
    assert found.scanner(filter="k = 7", fast_search=True).count_rows() == 3


def test_new_versions_are_seen(path: Path) -> None:
    _used(path)
    lance_dataset.write_dataset(pa.table({"k": [7]}), path, mode="append")
    assert lance_dataset.dataset(path).count_rows("k = 7") == 2
    assert lance_dataset.dataset(path, version=2).count_rows("k = 7") == 1


def test_content_is_forgotten_after_a_while(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _used(path)
    monkeypatch.setattr(recent_sessions, "_SECONDS", 0.0)
    assert lance_dataset.dataset(path).snapshot.reader is not reader
    assert not recent_sessions._ended


def test_few_are_kept(path: Path, tmp_path: Path) -> None:
    for number in range(10):
        shutil.copytree(path, tmp_path / str(number))
        _used(tmp_path / str(number))
    assert 0 < len(recent_sessions._ended) <= 4


def test_sessions_are_pickled_as_new_ones(path: Path) -> None:
    dataset = pickle.loads(pickle.dumps(lance_dataset.dataset(path)))
    assert dataset.count_rows("k < 5") == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_child_process_may_use_it(path: Path) -> None:
    _used(path)
    child = os.fork()
    if child == 0:
        os._exit(0 if lance_dataset.dataset(path).count_rows("k = 9") == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
