"""Tests of local and in-memory stores: reads, listings, atomic writes, and plain or mapped input."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InvalidInputError,
    MemoryLimitError,
    MissingFileError,
)
from lance_dataset.io import local_input, local_output, local_publish, mounts
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.io.local_input import MappedInput, PlainInput
from lance_dataset.io.memory import MemoryStore
from lance_dataset.io.mounts import is_network_type
from lance_dataset.io.ranges import merge_ranges

CONTENT = bytes(range(256)) * 1024


@pytest.fixture(params=["mapped", "plain", "memory"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    return MemoryStore() if request.param == "memory" else LocalStore(mmap=request.param == "mapped")


def test_reading(store: ObjectStore, tmp_path: Path) -> None:
    path = f"{tmp_path}/a/b/file"
    store.put(path, CONTENT)
    with_size = store.open_input(path, len(CONTENT))
    assert with_size.size == len(CONTENT)
    assert with_size.read(5, 10).to_pybytes() == CONTENT[5:15]
    assert with_size.read(len(CONTENT), 0).size == 0
    if with_size.mapped is not None:
        assert with_size.mapped.to_pybytes() == CONTENT
    ranges = [(200_000, 100), (0, 10), (5, 10), (262_143, 1), (100_000, 0)]
    kept = with_size.read_ranges(ranges)
    with_size.close()
    assert [buffer.to_pybytes() for buffer in kept] == [CONTENT[start : start + size] for start, size in ranges]


@pytest.mark.parametrize("span", [(-1, 1), (0, -1), (0, len(CONTENT) + 1), (len(CONTENT), 1), (2**63, 2**63)])
def test_reading_outside(store: ObjectStore, tmp_path: Path, span: tuple[int, int]) -> None:
    path = f"{tmp_path}/file"
    store.put(path, CONTENT)
    opened = store.open_input(path)
    with pytest.raises(CorruptFileError, match="outside"):
        opened.read(*span)
    with pytest.raises(CorruptFileError, match="outside"):
        opened.read_ranges([(0, 1), span])


@pytest.mark.parametrize("slow", [0.0, 1.0])
def test_many_far_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: float) -> None:
    monkeypatch.setattr(local_input, "_SLOW", slow)
    monkeypatch.setattr(local_input, "_MAX_GAP", 0)
    path = f"{tmp_path}/file"
    LocalStore().put(path, CONTENT)
    ranges = [(start, 7) for start in range(len(CONTENT) - 7, 0, -1000)]
    for mmap in (True, False):
        buffers = LocalStore(mmap=mmap).open_input(path).read_ranges(ranges)
        assert [buffer.to_pybytes() for buffer in buffers] == [CONTENT[start : start + 7] for start, _ in ranges]


def test_sizes_and_missing_files(store: ObjectStore, tmp_path: Path) -> None:
    path = f"{tmp_path}/file"
    store.put(path, b"abc")
    with pytest.raises(CorruptFileError, match=r"has 3 bytes, but its manifest says 4"):
        store.open_input(path, 4)
    for action in (store.open_input, store.read):
        with pytest.raises(MissingFileError):
            action(f"{tmp_path}/none")
        with pytest.raises(MissingFileError):
            action(f"{tmp_path}/{'x' * 300}")
        with pytest.raises(MissingFileError):
            action(f"{tmp_path}/file/below")
    with pytest.raises(MissingFileError):
        store.open_input(str(tmp_path))
    store.delete(f"{tmp_path}/none")
    store.delete_tree(f"{tmp_path}/none")
    assert list(store.list(f"{tmp_path}/none")) == []


def test_empty_file(store: ObjectStore, tmp_path: Path) -> None:
    path = f"{tmp_path}/empty"
    store.open_output(path).close()
    opened = store.open_input(path, 0)
    assert opened.size == 0
    assert opened.read(0, 0).size == 0


def test_listing(store: ObjectStore, tmp_path: Path) -> None:
    for name in ("a", "b", "sub/c"):
        store.put(f"{tmp_path}/{name}", name.encode())
    found = {info.name: (info.path, info.size) for info in store.list(str(tmp_path))}
    assert found == {"a": (f"{tmp_path}/a", 1), "b": (f"{tmp_path}/b", 1)}
    assert {"a", "b"} <= set(store.list_names(f"{tmp_path}/"))
    store.delete_tree(str(tmp_path))
    assert not store.exists(f"{tmp_path}/sub/c")


def test_huge_sparse_files_are_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    os.truncate(path, 1 << 40)
    with pytest.raises(MemoryLimitError, match="x: has 1,099,511,627,776 bytes, more than the 1,073,741,824"):
        LocalStore().read(str(path))
    monkeypatch.setenv("LANCE_METADATA_MEMORY", str(1 << 39))
    with pytest.raises(MemoryLimitError, match="549,755,813,888"):
        LocalStore().read(str(path))
    monkeypatch.setenv("LANCE_METADATA_MEMORY", "much")
    with pytest.raises(InvalidInputError, match="LANCE_METADATA_MEMORY must be a number of bytes, not 'much'"):
        LocalStore().read(str(path))


def test_time_of_change(store: ObjectStore, tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    store.put(path, b"abc")
    [listed] = store.list(str(tmp_path))
    assert store.modified(path) == listed.modified == pytest.approx(time.time(), abs=60)
    with pytest.raises(MissingFileError, match="does not exist"):
        store.modified(str(tmp_path / "y"))


def test_writing(store: ObjectStore, tmp_path: Path) -> None:
    path = f"{tmp_path}/x/y/file"
    output = store.open_output(path)
    output.write(b"head")
    output.write_many([memoryview(CONTENT), b"", b"tail"])
    assert output.tell() == len(CONTENT) + 8
    output.close()
    output.abort()
    assert store.read(path) == b"head" + CONTENT + b"tail"
    with pytest.raises(InvalidInputError, match="closed"):
        output.write(b"more")
    with pytest.raises(AlreadyExistsError):
        store.open_output(path)


def test_abort_leaves_nothing(store: ObjectStore, tmp_path: Path) -> None:
    output = store.open_output(f"{tmp_path}/x/file")
    output.write(CONTENT)
    output.abort()
    output.abort()
    assert not store.exists(f"{tmp_path}/x/file")
    assert list(store.list(f"{tmp_path}/x")) == []


def test_put_hint(store: ObjectStore, tmp_path: Path) -> None:
    path = f"{tmp_path}/folder/hint"
    for content in (b"12345", b"123456789", b"7", b""):
        store.put_hint(path, content)
        assert store.read(path) == content


def test_put_if_absent(store: ObjectStore, tmp_path: Path) -> None:
    path = f"{tmp_path}/new/file"
    store.put_if_absent(path, b"1")
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent(path, b"2")
    assert store.read(path) == b"1"
    store.put(path, b"3")
    assert store.read(path) == b"3"
    assert [info.name for info in store.list(f"{tmp_path}/new")] == ["file"]


def test_put_if_absent_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(local_publish.os, "link", no_links)
    test_put_if_absent(LocalStore(), tmp_path)


def _race(path: str, index: int, results: multiprocessing.Queue) -> None:
    store = LocalStore()
    for number in range(20):
        try:
            store.put_if_absent(f"{path}/{number}", b"%d" % index * 1000)
            results.put((number, index))
        except AlreadyExistsError:
            pass


def test_put_if_absent_between_processes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_race, args=(str(tmp_path), index, results)) for index in range(4)]
    for process in processes:
        process.start()
    winners = dict(results.get(timeout=60) for _ in range(20))
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert results.empty()
    assert sorted(winners) == list(range(20))
    for number, index in winners.items():
        assert (tmp_path / str(number)).read_bytes() == b"%d" % index * 1000
    assert sorted(os.listdir(tmp_path)) == sorted(map(str, range(20)))


def test_killed_writer_leaves_no_half_file(tmp_path: Path) -> None:
    program = (
        "import sys; from lance_dataset.io.local import LocalStore\n"
        "store, n = LocalStore(), 0\n"
        "while True:\n"
        f"    store.put_if_absent({str(tmp_path)!r} + f'/{{n}}', b'x' * 100_000); n += 1\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    deadline = time.monotonic() + 60
    while not (tmp_path / "5").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for file in tmp_path.iterdir():
        assert file.name.startswith(".tmp_") or file.stat().st_size == 100_000


def test_mapping_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{tmp_path}/file"
    LocalStore().put(path, CONTENT)
    assert isinstance(LocalStore().open_input(path), MappedInput)
    assert isinstance(LocalStore(mmap=False).open_input(path), PlainInput)
    monkeypatch.setenv("LANCE_MMAP", "0")
    assert isinstance(LocalStore().open_input(path), PlainInput)
    assert isinstance(LocalStore(mmap=True).open_input(path), MappedInput)
    monkeypatch.delenv("LANCE_MMAP")
    monkeypatch.setattr("lance_dataset.io.mounts._file_system_type", lambda _descriptor: 0x6969)
    assert isinstance(LocalStore().open_input(path), PlainInput)
    assert LocalStore().open_input(path).is_remote
    assert isinstance(LocalStore(mmap=True).open_input(path), MappedInput)


@pytest.mark.parametrize(
    ("name", "network"),
    [("nfs4", True), ("fuse.sshfs", True), ("9p", True), ("cifs", True), ("ext4", False), ("fuseblk", False)],
)
def test_network_file_systems(name: str, network: bool) -> None:
    assert is_network_type(name) is network


@pytest.mark.parametrize(
    ("magic", "name", "network"),
    [
        (0x6969, "", True),
        (0x65735546, "virtiofs", True),
        (0x65735546, "", True),
        (0x65735546, "fuseblk", False),
        (0xEF53, "ext4", False),
        (0xEF53, "wekafs", True),
        (0, "nfs4", True),
        (0, "", False),
    ],
)
def test_types_that_the_system_reports(
    magic: int, name: str, network: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device number that is used again does not bring back the type of an earlier mount."""
    (tmp_path / "table").write_text(f"36 35 98:0 / /data rw - {name} source rw\n" if name else "")
    monkeypatch.setattr(mounts, "_MOUNT_TABLE", f"{tmp_path}/table")
    monkeypatch.setattr(mounts, "_file_system_type", lambda _descriptor: magic)
    mounts._is_network.cache_clear()
    assert mounts.is_network_file(0, os.makedev(98, 0)) is network
    monkeypatch.setattr(mounts, "_file_system_type", lambda _descriptor: 0xFF534D42)
    assert mounts.is_network_file(0, os.makedev(98, 0))
    mounts._is_network.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_types_of_real_file_systems(tmp_path: Path) -> None:
    shown = subprocess.run(["stat", "-f", "-c", "%t", tmp_path, "/proc"], capture_output=True, text=True, check=True)
    found = []
    for path in (tmp_path, "/proc"):
        descriptor = os.open(path, os.O_RDONLY)
        found.append(mounts._file_system_type(descriptor))
        os.close(descriptor)
    assert found == [int(line, 16) for line in shown.stdout.split()]


def test_file_that_shrinks(tmp_path: Path) -> None:
    path = f"{tmp_path}/file"
    LocalStore().put(path, CONTENT)
    opened = LocalStore(mmap=False).open_input(path)
    os.truncate(path, 1000)
    with pytest.raises(CorruptFileError, match="shrank"):
        opened.read(0, 2000)


def test_partial_writes_and_early_writeback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_writev = os.writev
    started: list[tuple[int, int]] = []
    monkeypatch.setattr(local_output.os, "writev", lambda fd, parts: real_writev(fd, [parts[0][:70_001]]))
    monkeypatch.setattr(local_output, "_WRITEBACK_STEP", 100_000)
    monkeypatch.setattr(local_output, "_start_writeback", lambda fd, start, size: started.append((start, size)))
    output = LocalStore().open_output(f"{tmp_path}/file")
    for _ in range(3):
        output.write_many([CONTENT, b"small", memoryview(CONTENT)[1:]])
    output.close()
    assert (tmp_path / "file").read_bytes() == (CONTENT + b"small" + CONTENT[1:]) * 3
    starts, sizes = zip(*started, strict=True)
    assert len(starts) >= 3
    assert list(starts) == [0, *itertools.accumulate(sizes)][:-1], "each byte is started once"


def test_paths_are_checked() -> None:
    for path in ("relative", "a\0b", "/a\0b"):
        with pytest.raises(InvalidInputError):
            LocalStore().read(path)


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), max_size=20),
    st.integers(0, 50),
    st.integers(0, 300),
)
def test_merged_ranges_cover_everything_once(ranges: list[tuple[int, int]], gap: int, limit: int) -> None:
    merged = merge_ranges(ranges, gap, limit)
    assert sorted(index for request in merged for index in request.members) == list(range(len(ranges)))
    for request in merged:
        for index in request.members:
            start, size = ranges[index]
            assert request.offset <= start
            assert start + size <= request.offset + request.length
        assert request.length <= limit or len(request.members) == 1


def test_trees_that_cannot_be_listed_are_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_bytes(b"x")
    scandir = os.scandir

    def refuse(folder: int) -> object:
        if os.path.samestat(os.fstat(folder), os.stat(tmp_path / "a/b")):
            raise PermissionError(13, "refused")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError):
        list(LocalStore().list_tree(str(tmp_path)))
    assert list(LocalStore().list_tree(f"{tmp_path}/nothing")) == []


def test_a_tree_goes_although_a_file_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tree"
    for number in range(5):
        (folder / f"{number}").mkdir(parents=True)
        (folder / f"{number}/file").write_bytes(b"x")
    unlink, vanished = os.unlink, []

    def race(path: str, **options: int) -> None:
        unlink(path, **options)
        if not vanished:
            vanished.append(path)
            raise FileNotFoundError(path)

    monkeypatch.setattr(os, "unlink", race)
    LocalStore().delete_tree(str(folder))
    assert vanished
    assert not folder.exists()
    LocalStore().delete_tree(str(folder))


@pytest.mark.parametrize("fsync", [False, True])
def test_new_files_together(tmp_path: Path, fsync: bool) -> None:
    store = LocalStore(fsync=fsync)
    waited: list[int] = []

    def wait(calls: Sequence[Callable[[], None]]) -> None:
        waited.append(len(calls))
        for call in reversed(calls):
            call()

    names = [f"{tmp_path}/{'ab'[number % 2]}/{number}" for number in range(300)]
    store.put_new(((name, name.encode() * (number % 3)) for number, name in enumerate(names)), wait)
    assert waited == ([128, 128, 44] if fsync else [])
    assert [store.read(name) for name in names] == [name.encode() * (number % 3) for number, name in enumerate(names)]
    others = [f"{tmp_path}/c/{number}" for number in range(140)]
    with pytest.raises(AlreadyExistsError, match="a/0"):
        store.put_new((name, b"x") for name in [*others, names[0]])
    assert list(store.list(f"{tmp_path}/c")) == []
    assert store.read(names[0]) == b""

    def failing() -> Iterator[tuple[str, bytes]]:
        yield others[0], b"x"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.put_new(failing())
    assert list(store.list(f"{tmp_path}/c")) == []


class StubbornStore(MemoryStore):
    """Store that refuses to remove some objects."""

    def delete(self, path: str) -> None:
        if path.endswith("/0"):
            raise OSError("objects are locked")
        super().delete(path)


def test_new_objects_that_cannot_be_removed_do_not_hide_the_failure() -> None:
    store = StubbornStore()

    def failing() -> Iterator[tuple[str, bytes]]:
        yield from ((f"/d/{number}", b"x") for number in range(3))
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        store.put_new(failing())
    assert [each.path for each in store.list("/d")] == ["/d/0"]
