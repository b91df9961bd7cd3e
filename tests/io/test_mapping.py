"""Tests of mapped files: content, advice that changes nothing, memory released with the last buffer."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from lance_dataset.io import local_input
from lance_dataset.io.local import LocalStore
from lance_dataset.io.local_input import MappedInput

SIZE = 3_000_017


@pytest.fixture
def content(tmp_path: Path) -> tuple[str, bytes]:
    data = random.Random(1).randbytes(SIZE)
    path = tmp_path / "file"
    path.write_bytes(data)
    return str(path), data


def opened(path: str) -> MappedInput:
    found = LocalStore(mmap=True).open_input(path)
    assert isinstance(found, MappedInput)
    return found


def test_advice_changes_no_bytes(content: tuple[str, bytes]) -> None:
    path, data = content
    source, rng = opened(path), random.Random(2)
    for scattered in (True, False, True):
        source.scatter(scattered)
        ranges = []
        for _ in range(40):
            start = rng.randrange(SIZE)
            ranges.append((start, min(rng.choice([0, 1, 4096, 100_000]), SIZE - start)))
        source.will_need(ranges)
        source.will_need(ranges[:1])
        source.will_need([])
        for (start, length), buffer in zip(ranges, source.read_ranges(ranges), strict=True):
            assert buffer.to_pybytes() == data[start : start + length]
            source.discard(start, length)
            assert buffer.to_pybytes() == data[start : start + length]


def test_what_is_not_in_memory_is_loaded(content: tuple[str, bytes]) -> None:
    path, data = content
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    source = opened(path)
    source.scatter(True)
    source.will_need([(0, SIZE)])  # on a file system in memory the file is already loaded
    assert source.read(0, SIZE).to_pybytes() == data
    assert not source.will_need([(0, SIZE)])


def test_long_ranges_are_loaded_to_their_end(tmp_path: Path) -> None:
    path, size = tmp_path / "long", 24 << 20  # more than the system loads for one piece of advice
    path.write_bytes(bytes(size))
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    source = opened(str(path))
    source.scatter(True)
    mapping = source._mapping
    assert mapping is not None
    for _ in range(60):  # on a busy machine the system evicts pages, and then has to be asked again
        source.will_need([(1, size - 2)])
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            if all(map(mapping.is_resident, range(0, size, 64 << 10))):
                return
            time.sleep(0.01)
    pytest.fail("some of the range was never loaded")


def test_what_the_system_does_not_tell_is_left_to_it(
    content: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the system does not tell which pages are loaded, loading is left to it.

    For files of other users Linux reports all pages as loaded. Then nothing would be loaded, not even the pages around.
    """
    path, data = content
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(path).st_uid + 1)
    source = opened(path)
    assert source._mapping is not None
    assert not source._mapping.tells_residency
    monkeypatch.setattr(type(source._mapping), "scatter", lambda *_: pytest.fail("advice that loads single pages"))
    source.scatter(True)
    assert not source.will_need([(0, SIZE)])
    assert source.read(0, SIZE).to_pybytes() == data


def test_buffers_outlive_the_input(content: tuple[str, bytes]) -> None:
    path, data = content
    source = opened(path)
    buffer = source.read(100, SIZE - 100)
    source.close()
    del source
    os.unlink(path)
    assert buffer.slice(5).to_pybytes() == data[105:]


@pytest.mark.parametrize("size", [0, 1, local_input._SMALL_FILE, local_input._SMALL_FILE + 1])
def test_small_files_are_loaded(tmp_path: Path, size: int) -> None:
    path, data = tmp_path / "small", random.Random(3).randbytes(size)
    path.write_bytes(data)
    source = opened(str(path))
    assert source.mapped.to_pybytes() == data
    assert (source._mapping is None) == (size <= local_input._SMALL_FILE)
    source.scatter(True)
    assert not source.will_need([(0, size)]) or size > local_input._SMALL_FILE
    source.discard(0, size)
    if source._mapping is None:
        path.write_bytes(b"")  # the data is already loaded
        assert source.read(0, size).to_pybytes() == data


def test_fewer_places_are_checked_as_long_as_everything_is_in_memory(
    content: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = content
    source, places = opened(path), list[int]()
    resident = set(range(SIZE))
    monkeypatch.setattr(MappedInput, "_found", 0)
    monkeypatch.setattr(
        type(source._mapping), "is_resident", lambda _, offset: places.append(offset) or offset in resident
    )
    ranges = [(number * 100_000, 50) for number in range(24)]
    counts = []
    for _ in range(3 * local_input._LUCKY):
        places.clear()
        assert not source.will_need(ranges)
        counts.append(len(places))
    assert counts[0] == local_input._SAMPLES
    assert counts.count(local_input._SAMPLES) == local_input._LUCKY + 2
    assert min(counts) == local_input._FEW_SAMPLES
    resident.clear()
    assert source.will_need(ranges)
    places.clear()
    resident.update(range(SIZE))
    assert not source.will_need(ranges)
    assert len(places) == local_input._SAMPLES
