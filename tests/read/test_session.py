"""Tests of sessions: cached objects, their memory, and eviction."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import weakref
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import Session
from lance_dataset.read import metadata_cache
from lance_dataset.table.manifest import Manifest, decode_manifest


@pytest.fixture
def path(tmp_path: Path) -> str:
    lance_dataset.write_dataset(
        pa.table({"id": range(100), "name": [f"n{i}" for i in range(100)]}), tmp_path / "d.lance"
    )
    return str(tmp_path / "d.lance")


def append(path: str, *values: int) -> None:
    table = pa.table({"id": values, "name": ["more"] * len(values)})
    lance_dataset.write_dataset(table, path, mode="append")


def test_opening_again_finds_everything(path: str) -> None:
    session = Session()
    first = lance_dataset.dataset(path, session=session)
    assert first.take([3])["name"].to_pylist() == ["n3"]
    assert (session.cache_stats().hits, session.cache_stats().misses) == (0, 2)
    again = lance_dataset.dataset(path, session=session)
    found = session.cache_stats()
    assert (found.hits, found.misses, found.entries) == (2, 2, 2)
    first.io_stats_incremental()
    assert again.take([4, 3])["name"].to_pylist() == ["n4", "n3"]
    assert again.snapshot.reader is first.snapshot.reader
    assert first.io_stats_snapshot() == again.io_stats_snapshot()
    assert found.bytes == session.size_bytes() > 0
    assert found.max_bytes == 1 << 30
    assert str(found.hits) in repr(session)


def test_a_dataset_without_a_session_has_one_of_its_own(path: str) -> None:
    one, two = lance_dataset.dataset(path), lance_dataset.dataset(path)
    assert one.snapshot.reader is not two.snapshot.reader
    assert not one.session().is_same_as(two.session())
    assert one.session().is_same_as(one.checkout_version(1).session())
    assert one.session().cache_stats().misses > 0


def test_new_versions_are_seen(path: str) -> None:
    session = Session()
    handle = lance_dataset.dataset(path, session=session)
    handle.take([0])
    append(path, 100, 101)
    assert lance_dataset.dataset(path, session=session).count_rows() == 102
    assert handle.count_rows() == 100
    handle.checkout_latest()
    assert handle.take([101])["id"].to_pylist() == [101]


def test_versions_share_open_files(path: str) -> None:
    session = Session()
    old = lance_dataset.dataset(path, session=session)
    old.take([0])
    append(path, 100)
    new = lance_dataset.dataset(path, session=session)
    new.take([0])
    assert new.snapshot.reader is not old.snapshot.reader
    assert new.snapshot.reader.fragments[0].stored(0)[0] is old.snapshot.reader.fragments[0].stored(0)[0]


def test_another_dataset_of_the_same_name(path: str) -> None:
    session = Session()
    assert lance_dataset.dataset(path, session=session).take([5])["id"].to_pylist() == [5]
    lance_dataset.LanceDataset.drop(path)
    with pytest.raises(ValueError, match="not found"):
        lance_dataset.dataset(path, session=session)
    lance_dataset.write_dataset(pa.table({"other": range(7)}), path)
    found = lance_dataset.dataset(path, session=session)
    assert found.to_table().to_pydict() == {"other": list(range(7))}


def test_options_are_kept_apart(path: str) -> None:
    session = Session()
    mapped = lance_dataset.dataset(path, session=session, storage_options={"mmap": "true"})
    plain = lance_dataset.dataset(path, session=session, storage_options={"mmap": "false"})
    for handle, expected in ((mapped, True), (plain, False)):
        handle.take([0])
        assert handle.snapshot.reader.fragments[0].is_mapped is expected


def test_old_entries_go_first(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.lance") for number in range(4)]
    for path in paths:
        lance_dataset.write_dataset(pa.table({"id": range(10)}), path)
    probe = Session()
    lance_dataset.dataset(paths[0], session=probe).take([1])
    size = probe.size_bytes()
    session = Session(metadata_cache_size_bytes=int(2.5 * size))
    for path in (*paths[:2], paths[0], paths[2]):
        assert lance_dataset.dataset(path, session=session).take([1])["id"].to_pylist() == [1]
        assert session.size_bytes() <= 2.5 * size
    evicted = session.cache_stats()
    assert evicted.evictions > 0
    lance_dataset.dataset(paths[0], session=session)
    assert session.cache_stats().hits == evicted.hits + 2
    lance_dataset.dataset(paths[1], session=session)
    assert session.cache_stats().misses == evicted.misses + 2


def test_evicted_tables_close_their_files(path: str) -> None:
    session = Session()
    handle = lance_dataset.dataset(path, session=session)
    handle.take([0])
    opened = weakref.ref(handle.snapshot.reader.fragments[0].stored(0)[0])
    del handle
    assert opened() is not None
    session.clear_cache()
    assert opened() is None
    assert session.size_bytes() == session.cache_stats().entries == 0


def test_a_limit_of_nothing_keeps_nothing(path: str) -> None:
    session = Session(metadata_cache_size_bytes=0)
    handle = lance_dataset.dataset(path, session=session)
    assert handle.take([7])["id"].to_pylist() == [7]
    assert session.size_bytes() == 0
    limited = lance_dataset.dataset(path, metadata_cache_size_bytes=0)
    limited.to_table()
    assert limited.session().size_bytes() == 0
    assert limited.session().cache_stats().max_bytes == 0


def test_commits_do_not_pile_up(path: str) -> None:
    handle = lance_dataset.dataset(path)
    handle.take([0])
    for number in range(20):
        handle.insert(pa.table({"id": [number], "name": ["x"]}))
        handle.take([0])
    tables = [key for key in handle.session().metadata._entries if key[0] == "table"]
    assert len(tables) == 1


def test_nothing_waits_for_the_garbage_collector(path: str) -> None:
    session = Session()
    handle = lance_dataset.dataset(path, session=session)
    handle.take([1])
    gone = [weakref.ref(each) for each in (session, handle.snapshot.reader, handle.snapshot.reader.fragments[0])]
    gc.disable()
    try:
        del session, handle
        assert [each() for each in gone] == [None, None, None]
    finally:
        gc.enable()


def test_a_scanner_outlives_session_and_dataset(path: str) -> None:
    scanner = lance_dataset.dataset(path).scanner(limit=1)
    gc.collect()
    assert scanner.to_table()["id"].to_pylist() == [0]


def test_threads_share_a_session(path: str) -> None:
    session = Session(metadata_cache_size_bytes=40_000)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(30):
                handle = lance_dataset.dataset(path, session=session)
                row = (number * 7 + turn) % 100
                assert handle.take([row])["name"].to_pylist() == [f"n{row}"]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = session.cache_stats()
    assert found.hits + found.misses == 2 * 8 * 30
    assert found.bytes <= 40_000


def test_a_fork_uses_its_copy(path: str) -> None:
    session = Session()
    lance_dataset.dataset(path, session=session).take([1])
    child = os.fork()
    if child == 0:
        found = lance_dataset.dataset(path, session=session).take([2])["id"].to_pylist()
        os._exit(0 if found == [2] and session.cache_stats().hits == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_memory_belongs_to_the_session() -> None:
    session = Session()
    lance_dataset.write_dataset(pa.table({"id": range(3)}), "memory://m", session=session)
    assert lance_dataset.dataset("memory://m", session=session).count_rows() == 3
    with pytest.raises(ValueError, match="not found"):
        lance_dataset.dataset("memory://m")


def test_io_statistics_as_of_the_reference(path: str) -> None:
    """Handles of a session count together, and `io_stats_incremental` starts again, as in the reference."""
    for module in (lance, lance_dataset):
        session = module.Session()
        one, two, other = (module.dataset(path, session=each) for each in (session, session, None))
        opened = other.io_stats_snapshot()
        one.to_table()
        found = two.io_stats_snapshot()
        assert found.read_iops > opened.read_iops > 0
        assert found.read_bytes > opened.read_bytes > 0
        assert found.write_iops == found.written_bytes == 0
        assert other.io_stats_snapshot().read_iops == opened.read_iops
        assert one.io_stats_incremental().read_bytes == found.read_bytes
        assert two.io_stats_snapshot().read_iops == two.io_stats_incremental().read_bytes == 0
    written = lance_dataset.write_dataset(pa.table({"id": [1]}), path, mode="overwrite")
    assert written.io_stats_snapshot().written_bytes > 0


@pytest.mark.filterwarnings("ignore:.*index_cache_size:DeprecationWarning")
@pytest.mark.parametrize(
    "name", ["block_size", "index_cache_size", "metadata_cache_size_bytes", "index_cache_size_bytes"]
)
def test_sizes(path: str, name: str) -> None:
    for module in (lance, lance_dataset):
        assert module.dataset(path, **{name: 4096}).count_rows() == 100
        with pytest.raises(TypeError):
            module.dataset(path, **{name: "x"})
        with pytest.raises(OverflowError):
            module.dataset(path, **{name: -1})


def test_wrong_arguments(path: str) -> None:
    for module in (lance, lance_dataset):
        with pytest.raises(TypeError):
            module.dataset(path, session=3)
        with pytest.raises(TypeError):
            module.dataset(path, read_params=3)
        with pytest.raises(ValueError):
            module.dataset(path, block_size=0)
        with pytest.raises(OverflowError):
            module.Session(metadata_cache_size_bytes=-1)
        with pytest.raises(TypeError):
            module.Session("x")
        with pytest.raises(TypeError):
            module.Session().is_same_as(3)
        assert module.dataset(path, read_params={"validate_on_decode": True}).count_rows() == 100
        assert module.Session().index_cache_size_bytes() == 0
    with pytest.raises(lance_dataset.errors.UnsupportedError, match="metadata_cache_backend"):
        Session(metadata_cache_backend="moka://")


def test_base_paths_are_kept_apart_by_their_options(path: str, tmp_path: Path) -> None:
    """Base paths with `base_1.` options are cached apart from the table's files at the same location."""
    session = Session()
    plain = lance_dataset.dataset(path, session=session)
    plain.shallow_clone(str(tmp_path / "clone.lance"), 1)
    base = next(iter(lance_dataset.dataset(tmp_path / "clone.lance").snapshot.manifest.base_paths)).id
    options = {f"base_{base}.mmap": "false"}
    clone = lance_dataset.dataset(tmp_path / "clone.lance", session=session, storage_options=options)
    origin = lance_dataset.dataset(path, session=session, storage_options=options)
    for handle, expected in ((plain, True), (clone, False), (origin, True)):
        handle.take([0])
        assert handle.snapshot.reader.fragments[0].is_mapped is expected


def test_small_manifests_are_decoded_once_by_a_process(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []

    def decode(data: bytes, name: str) -> Manifest:
        decoded.append(name)
        return decode_manifest(data, name)

    monkeypatch.setattr(metadata_cache, "decode_manifest", decode)
    for _ in range(3):
        assert lance_dataset.dataset(path).count_rows() == lance_dataset.dataset(path).to_table().num_rows
    assert len(decoded) <= 1
    append(path, 7, 8)
    rows = lance_dataset.dataset(path).count_rows()
    shutil.rmtree(path)
    lance_dataset.write_dataset(pa.table({"x": range(rows + 1)}), path)
    assert lance_dataset.dataset(path).count_rows() == rows + 1
    recent = metadata_cache._RecentManifests()
    monkeypatch.setattr(metadata_cache, "_RECENT_FILE_BYTES", 1)
    data = next(Path(path, "_versions").glob("*.manifest")).read_bytes()
    decoded.clear()
    assert recent.decode(data, "m") is not recent.decode(data, "m")
    monkeypatch.setattr(metadata_cache, "_RECENT_FILE_BYTES", 1 << 20)
    monkeypatch.setattr(metadata_cache, "_RECENT_BYTES", int(1.5 * len(data)))
    first = recent.decode(data, "m")
    assert recent.decode(data, "m") is first
    recent.decode(data, "n")
    assert recent.decode(data, "m") is not first
