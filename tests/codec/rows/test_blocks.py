from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from lancecodec import CodecError, blocks
from lancecodec.blocks import FileBlocks

BLOCK, EXTENT = 4096, 64 * 4096
LIMIT = blocks.usage()[1]
SIZE = 5 * EXTENT + 1234


@pytest.fixture(autouse=True)
def own_limit() -> Iterator[None]:
    yield
    blocks.set_limit(LIMIT)


@pytest.fixture
def content() -> bytes:
    return np.random.default_rng(3).integers(0, 256, SIZE, np.uint8).tobytes()


@pytest.fixture(params=["descriptor", "function"])
def file(request: pytest.FixtureRequest, tmp_path: Path, content: bytes) -> Iterator[tuple[FileBlocks, list[int]]]:
    """Blocks, and the sizes of reads from the file."""
    reads: list[int] = []

    def fetch(ranges: list[tuple[int, int]]) -> list[bytes]:
        reads.extend(size for _, size in ranges)
        return [content[offset : offset + size] for offset, size in ranges]

    if request.param == "function":
        yield FileBlocks(SIZE, fetch), reads
        return
    (tmp_path / "file").write_bytes(content)
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    yield FileBlocks(SIZE, fetch, lambda: descriptor, lambda _, size: reads.append(size)), reads
    os.close(descriptor)


def hold(found: FileBlocks, *ranges: tuple[int, int]) -> blocks.Held:
    begins, ends = np.array(ranges, np.int64).reshape(-1, 2).T
    return found.hold(np.ascontiguousarray(begins), np.ascontiguousarray(ends))


def test_only_what_is_needed_is_read_once(file: tuple[FileBlocks, list[int]], content: bytes) -> None:
    found, reads = file
    view = memoryview(found)
    assert view.readonly
    assert view.nbytes == SIZE
    assert not any(view)
    held = [hold(found, (5000, 5001)), hold(found, (0, 0))]
    assert sum(reads) == BLOCK
    assert view[BLOCK : 2 * BLOCK] == content[BLOCK : 2 * BLOCK]
    assert not any(view[2 * BLOCK :])
    held.append(hold(found, (4096, 8192)))
    assert sum(reads) == BLOCK
    held.append(hold(found, (SIZE - 1, SIZE), (EXTENT - 1, EXTENT + 1)))
    assert view[EXTENT - BLOCK : EXTENT + BLOCK] == content[EXTENT - BLOCK : EXTENT + BLOCK]
    assert view[-100:] == content[-100:]
    assert sum(reads) == 3 * BLOCK + SIZE % BLOCK


def test_near_ranges_are_one_read(file: tuple[FileBlocks, list[int]], content: bytes) -> None:
    found, reads = file
    held = hold(found, (10 * BLOCK, 11 * BLOCK), (BLOCK, BLOCK + 1), (3 * BLOCK, 3 * BLOCK + 5), (BLOCK, 2 * BLOCK))
    assert sum(reads) == 4 * BLOCK
    view = memoryview(found)
    assert view[BLOCK : 4 * BLOCK] == content[BLOCK : 4 * BLOCK]
    del held


def test_random_ranges(file: tuple[FileBlocks, list[int]], content: bytes) -> None:
    found, _ = file
    rng = np.random.default_rng(0)
    blocks.set_limit(EXTENT)
    view = memoryview(found)
    for _ in range(50):
        begins = rng.integers(0, SIZE, 20)
        ends = np.minimum(begins + rng.integers(0, 20_000, 20), SIZE)
        held = found.hold(begins, ends)
        assert all(view[begin:end] == content[begin:end] for begin, end in zip(begins, ends, strict=True))
        del held


def test_blocks_in_use_are_not_dropped(file: tuple[FileBlocks, list[int]], content: bytes) -> None:
    found, _ = file
    view = memoryview(found)
    before = blocks.usage()[0]
    held = hold(found, (0, 10))
    blocks.set_limit(0)
    assert view[:10] == content[:10]
    assert blocks.usage()[0] == before + BLOCK
    del held
    blocks.set_limit(0)
    assert blocks.usage()[0] == before
    assert not any(view[:10])
    assert hold(found, (0, 10)) is not None
    assert view[:10] == content[:10]


def test_memory_is_given_back(content: bytes) -> None:
    before = blocks.usage()[0]
    found = FileBlocks(SIZE, lambda ranges: [content[offset : offset + size] for offset, size in ranges])
    held = hold(found, (0, SIZE))
    assert blocks.usage()[0] - before >= SIZE
    del found
    gc.collect()
    assert blocks.usage()[0] - before >= SIZE
    del held
    assert blocks.usage()[0] == before


def test_load_takes_whole_blocks(file: tuple[FileBlocks, list[int]], content: bytes) -> None:
    found, reads = file
    found.load([(1, 3), (SIZE // BLOCK, SIZE // BLOCK + 1)])
    assert sum(reads) == 2 * BLOCK + SIZE % BLOCK
    assert memoryview(found)[BLOCK : 3 * BLOCK] == content[BLOCK : 3 * BLOCK]
    with pytest.raises(CodecError, match="blocks 3 to 1"):
        found.load([(3, 1)])


@pytest.mark.parametrize("given", [(-1, 5), (5, 4), (0, SIZE + 1), (SIZE + 1, SIZE + 1), (0, 2**63 - 1), (-(2**63), 0)])
def test_ranges_outside_the_file(file: tuple[FileBlocks, list[int]], given: tuple[int, int]) -> None:
    with pytest.raises(CodecError, match="of a file of"):
        hold(file[0], given)
    assert not file[1]


def test_arguments_are_checked(file: tuple[FileBlocks, list[int]]) -> None:
    with pytest.raises(CodecError, match="begins and"):
        file[0].hold(np.zeros(2, np.int64), np.zeros(3, np.int64))
    with pytest.raises(CodecError, match="limit"):
        blocks.set_limit(-1)
    for size in (-1, 2**47):
        with pytest.raises(CodecError, match="a file of"):
            FileBlocks(size, lambda _: [])


def test_a_file_that_shrank(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content[: 2 * BLOCK])
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    given: list[int] = []
    found = FileBlocks(SIZE, lambda _: [], lambda: descriptor, lambda reads, _: given.append(reads))
    held = hold(found, (0, BLOCK))
    with pytest.raises(CodecError, match="shrank"):
        hold(found, (BLOCK, 3 * BLOCK))
    os.close(descriptor)
    with pytest.raises(OSError, match="descriptor"):
        hold(found, (SIZE - 1, SIZE))
    assert given == [1, 0, 0]
    assert memoryview(found)[:BLOCK] == content[:BLOCK]
    del held


@pytest.mark.parametrize("answer", [lambda _: [], lambda _: [b"short"], lambda _: [b"x" * BLOCK] * 2])
def test_answers_of_another_size(answer: Callable[[object], list[bytes]]) -> None:
    found = FileBlocks(SIZE, answer)
    with pytest.raises(CodecError, match="instead of"):
        hold(found, (0, 1))
    assert not any(memoryview(found)[:BLOCK])


def test_an_error_of_the_function_is_passed_on() -> None:
    def fetch(_: object) -> list[bytes]:
        raise KeyboardInterrupt

    before = blocks.usage()[0]
    with pytest.raises(KeyboardInterrupt):
        hold(FileBlocks(SIZE, fetch), (0, 1))
    assert blocks.usage()[0] == before
