"""Tests of plain reads beyond the limit of open files, from threads, and of files that change meanwhile."""

from __future__ import annotations

import gc
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lance_dataset.errors import CorruptFileError, InvalidInputError, MissingFileError
from lance_dataset.io import local_input
from lance_dataset.io.descriptors import DescriptorPool
from lance_dataset.io.local import LocalStore
from lance_dataset.io.local_input import PlainInput

FILES, SIZE, IDLE = 12, 50_000, 3


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[PlainInput], list[bytes]]:
    monkeypatch.setattr(local_input, "_pool", DescriptorPool(IDLE))
    contents = [random.Random(number).randbytes(SIZE) for number in range(FILES)]
    inputs = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(content)
        found = LocalStore(mmap=False).open_input(str(path))
        assert isinstance(found, PlainInput)
        inputs.append(found)
    return inputs, contents


def open_below(folder: Path) -> int:
    """Return the descriptors of this process for files in a folder."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith(f"{folder}/")
        except FileNotFoundError:
            continue
    return count


def test_few_stay_open(files: tuple[list[PlainInput], list[bytes]], tmp_path: Path) -> None:
    inputs, contents = files
    assert open_below(tmp_path) == IDLE

    def read(seed: int) -> bool:
        rng = random.Random(seed)
        good = True
        for _ in range(100):
            number, start = rng.randrange(FILES), rng.randrange(SIZE - 100)
            found = inputs[number].read_ranges([(start, 100), (0, 10)])
            good &= [each.to_pybytes() for each in found] == [
                contents[number][start : start + 100],
                contents[number][:10],
            ]
        return good

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))
    assert open_below(tmp_path) == IDLE


def test_all_are_closed_with_the_inputs(files: tuple[list[PlainInput], list[bytes]], tmp_path: Path) -> None:
    inputs, _ = files
    inputs[-1].close()
    inputs[-1].close()
    assert open_below(tmp_path) == IDLE - 1
    with pytest.raises(InvalidInputError, match="is closed"):
        inputs[-1].read(0, 1)
    inputs.clear()
    gc.collect()
    assert open_below(tmp_path) == 0


def test_files_that_change_meanwhile(files: tuple[list[PlainInput], list[bytes]], tmp_path: Path) -> None:
    inputs, contents = files
    for number in (0, FILES - 1):
        os.unlink(tmp_path / f"{number}.bin")
    (tmp_path / "new").write_bytes(contents[1])
    os.replace(tmp_path / "new", tmp_path / "1.bin")
    assert inputs[-1].read(5, 10).to_pybytes() == contents[-1][5:15]  # still open
    with pytest.raises(MissingFileError, match=r"0\.bin does not exist any more"):
        inputs[0].read(5, 10)
    with pytest.raises(CorruptFileError, match=r"1\.bin: was replaced"):
        inputs[1].read(5, 10)


def test_a_file_that_cannot_be_mapped_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, size: int) -> None:
        raise OSError(12, "cannot map")

    path = tmp_path / "a"
    path.write_bytes(bytes(100_000))
    monkeypatch.setattr(local_input, "map_file", refuse)
    found = LocalStore().open_input(str(path))
    assert isinstance(found, PlainInput)
    assert found.read(50_000, 10).to_pybytes() == bytes(10)
    with pytest.raises(OSError, match="cannot map"):
        LocalStore(mmap=True).open_input(str(path))
