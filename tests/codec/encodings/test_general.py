"""Tests of general compression of buffers: LZ4 and Zstandard."""

from __future__ import annotations

import random
import threading
import tracemalloc

import lz4.block
import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.general import (
    Scheme,
    compress,
    compress_units,
    decompress,
    decompress_first,
    decompress_units,
    decompressed_ends,
    decompressed_size,
)

SCHEMES: list[Scheme] = ["lz4", "zstd"]
schemes = pytest.mark.parametrize("scheme", SCHEMES)
HELLO = b"Hello" * 100


def prefixed(frame: bytes, length: int) -> bytes:
    return length.to_bytes(8, "little") + frame


def bare(content: bytes, size: bool = True, checksum: bool = False) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=size, write_checksum=checksum).compress(content)


@pytest.mark.parametrize(
    ("scheme", "content", "unit"),
    [
        ("lz4", b"Hello", "05000000 50 48656c6c6f"),
        ("lz4", b"", "00000000 00"),
        ("zstd", b"Hello", "0500000000000000 28b52ffd 20 05 290000 48656c6c6f"),
        ("zstd", b"", "0000000000000000 28b52ffd 20 00 010000"),
    ],
)
def test_golden_vectors(scheme: Scheme, content: bytes, unit: str) -> None:
    assert compress(scheme, None, content) == bytes.fromhex(unit)
    assert decompress(scheme, bytes.fromhex(unit), expected_size=len(content)) == content


@schemes
@given(content=st.binary(max_size=3000), repeat=st.integers(1, 200), level=st.sampled_from([None, 0, -3, 1, 3, 9]))
def test_round_trip(scheme: Scheme, content: bytes, repeat: int, level: int | None) -> None:
    content *= repeat
    unit = compress(scheme, level, content)
    assert decompressed_size(scheme, unit) == len(content)
    assert decompress(scheme, unit, expected_size=len(content)) == content
    assert decompress(scheme, np.frombuffer(b"x" + unit, np.uint8)[1:], max_size=10**6) == content


@schemes
def test_other_writers_and_readers(scheme: Scheme) -> None:
    """Arrow's LZ4 reads and writes the same blocks, and its Zstandard the same frames."""
    codec = pa.Codec("lz4_raw" if scheme == "lz4" else "zstd")
    content = bytes(range(256)) * 300
    head = len(content).to_bytes(4 if scheme == "lz4" else 8, "little")
    assert decompress(scheme, head + codec.compress(content, asbytes=True), max_size=10**6) == content
    assert codec.decompress(compress(scheme, None, content)[len(head) :], len(content), asbytes=True) == content


def test_level_matters_to_zstd_only() -> None:
    content = bytes(random.Random(1).choices(b"abcdefgh ", k=50_000))
    assert len(compress("zstd", 19, content)) < len(compress("zstd", -5, content))
    assert compress("zstd", None, content) == compress("zstd", 0, content) == compress("zstd", 3, content)
    assert compress("lz4", 12, content) == compress("lz4", None, content)
    with pytest.raises(ValueError):
        compress("zstd", 23, content)


@pytest.mark.parametrize(
    "unit",
    [
        bare(HELLO),
        bare(HELLO, size=False),
        bare(HELLO, checksum=True),
        bare(HELLO, size=False, checksum=True),
        prefixed(bare(HELLO, size=False), 500),
        prefixed(bare(HELLO, checksum=True), 500),
    ],
)
def test_zstd_forms(unit: bytes) -> None:
    assert decompress("zstd", unit, expected_size=500) == HELLO
    assert decompress_first("zstd", unit, 7) == HELLO[:7]
    assert decompress_first("zstd", unit, 600) == HELLO


def test_a_length_that_begins_like_a_frame_is_a_length() -> None:
    """A length that starts like a Zstandard frame is taken for a length.

    Its fifth byte has the bit that no frame header has, and the content has that length.
    """
    length = int.from_bytes(b"\x28\xb5\x2f\xfd\x10\0\0\0", "little")
    with pytest.raises(CodecError, match="cannot hold"):
        decompressed_size("zstd", prefixed(bare(HELLO), length))


def test_empty_units() -> None:
    assert decompress("zstd", b"", expected_size=0) == b""
    assert decompress("zstd", prefixed(bare(b"", size=False), 0), expected_size=0) == b""
    assert decompress("zstd", bare(b"", checksum=True), expected_size=0) == b""
    with pytest.raises(CodecError):
        decompress("lz4", b"", max_size=0)


@pytest.mark.parametrize(
    ("scheme", "unit"),
    [
        ("lz4", b"\0\0\0"),
        ("lz4", b"\0\0\0\0"),
        ("lz4", compress("lz4", None, HELLO)[:-1]),
        ("lz4", compress("lz4", None, HELLO) + b"\0"),
        ("lz4", (499).to_bytes(4, "little") + compress("lz4", None, HELLO)[4:]),
        ("lz4", (501).to_bytes(4, "little") + compress("lz4", None, HELLO)[4:]),
        ("lz4", (2**31).to_bytes(4, "little") + compress("lz4", None, HELLO)[4:]),
        ("zstd", b"\x28"),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        ("zstd", prefixed(b"", 0)),
        ("zstd", prefixed(b"", 5)),
        ("zstd", prefixed(bare(HELLO), 499)),
        ("zstd", prefixed(bare(HELLO), 501)),
        ("zstd", prefixed(bare(HELLO), 0)),
        ("zstd", prefixed(bare(HELLO), 2**64 - 1)),
        ("zstd", prefixed(bare(HELLO, size=False), 499)),
        ("zstd", prefixed(bare(HELLO, size=False), 501)),
        ("zstd", prefixed(bare(HELLO, size=False), 0)),
        ("zstd", bare(HELLO)[:-1]),
        ("zstd", bare(HELLO, size=False)[:-1]),
        ("zstd", bare(HELLO, checksum=True)[:-1]),
        ("zstd", bare(HELLO, checksum=True)[:-1] + b"\0"),
        ("zstd", bare(HELLO, size=False, checksum=True)[:-1]),
        ("zstd", bare(HELLO) + b"\0"),
        ("zstd", bare(HELLO, size=False) + b"\0"),
        ("zstd", bare(HELLO) + bare(HELLO)),
        ("zstd", bare(b"") + b"\0"),
        ("zstd", bare(b"") + b"\0" * 5000),
        ("zstd", prefixed(bytes.fromhex("28b52ffd 20 00 290000 48656c6c6f"), 0)),
    ],
)
def test_damage(scheme: Scheme, unit: bytes) -> None:
    with pytest.raises(CodecError):
        decompress(scheme, unit, max_size=10**6)


@schemes
def test_sizes_the_caller_knows(scheme: Scheme) -> None:
    unit = compress(scheme, None, HELLO)
    assert decompress(scheme, unit, max_size=500) == HELLO
    for size in (499, 501):
        with pytest.raises(CodecError):
            decompress(scheme, unit, expected_size=size)
    with pytest.raises(CodecError, match="at most 499"):
        decompress(scheme, unit, max_size=499)
    with pytest.raises(ValueError, match="expected_size"):
        decompress(scheme, unit)


@pytest.mark.parametrize("size", [True, False])
def test_a_bomb_stops_early(size: bool) -> None:
    bomb = bare(bytes(10**8), size)
    assert len(bomb) < 10_000
    tracemalloc.start()
    try:
        for unit in (bomb, prefixed(bomb, 10**8), prefixed(bomb, 0)):
            with pytest.raises(CodecError):
                decompress("zstd", unit, max_size=10**6)
        assert decompress_first("zstd", bomb, 10) == bytes(10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 10**7


def test_a_forged_length_allocates_nothing() -> None:
    for scheme, head in (("lz4", 4), ("zstd", 8)):
        unit = (2**31 - 1).to_bytes(head, "little") + bytes(100)
        with pytest.raises(CodecError, match="cannot hold"):
            decompress(scheme, unit, max_size=2**40)


class Units:
    """Random units with their ends, and their round trip."""

    def __init__(self, seed: int, nulls: bool = False) -> None:
        pick = random.Random(seed)
        self.start = pick.choice([0, 3])
        self.valid = [not nulls or pick.random() < 0.7 for _ in range(pick.choice([0, 1, 50]))]
        self.units = [pick.randbytes(pick.choice([0, 1, 700])) * (2 if ok else 0) for ok in self.valid]
        self.data = bytes(self.start) + b"".join(self.units)
        self.ends = self.start + np.cumsum([len(unit) for unit in self.units], dtype=np.int64)
        self.bitmap = np.packbits(np.array(self.valid, bool), bitorder="little") if nulls else None

    def back(self, scheme: Scheme) -> tuple[bytes, list[int]]:
        stored_ends, out_ends = np.empty(len(self.ends), np.int64), np.empty(len(self.ends), np.int64)
        stored = compress_units(scheme, None, self.data, self.ends, stored_ends, self.start, self.bitmap)
        shifted = b"??" + stored
        total = decompressed_ends(scheme, shifted, stored_ends + 2, out_ends, 10**6, 2, self.bitmap)
        out = bytearray(total)
        decompress_units(scheme, shifted, stored_ends + 2, out_ends, out, 2)
        return bytes(out), out_ends.tolist()


@schemes
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("nulls", [False, True])
def test_units(scheme: Scheme, seed: int, nulls: bool) -> None:
    units = Units(seed, nulls)
    assert units.back(scheme) == (units.data[units.start :], (units.ends - units.start).tolist())


@schemes
def test_units_are_framed_one_by_one(scheme: Scheme) -> None:
    ends, out_ends = np.array([2, 2, 6]), np.empty(3, np.int64)
    stored = compress_units(scheme, None, b"abcdef", ends, out_ends, validity=b"\x05")
    assert stored == compress(scheme, None, b"ab") + compress(scheme, None, b"cdef")
    assert out_ends.tolist() == [len(compress(scheme, None, b"ab"))] * 2 + [len(stored)]


def test_old_frames_among_units() -> None:
    frames = [bare(b"ab", size=False), compress("zstd", None, b"cd"), bare(b"")]
    ends, out_ends = np.cumsum([len(frame) for frame in frames]), np.empty(3, np.int64)
    out = bytearray(decompressed_ends("zstd", b"".join(frames), ends, out_ends, 4))
    decompress_units("zstd", b"".join(frames), ends, out_ends, out)
    assert (bytes(out), out_ends.tolist()) == (b"abcd", [2, 4, 4])
    with pytest.raises(CodecError, match="all units"):
        decompressed_ends("zstd", b"".join(frames), ends, out_ends, 3)


@schemes
def test_arguments_of_units(scheme: Scheme) -> None:
    ends, two, out = np.array([2, 4]), np.empty(2, np.int64), bytearray(9)
    for bad in (np.array([3, 2]), np.array([-1, 2]), np.array([2, 5])):
        with pytest.raises(CodecError):
            compress_units(scheme, None, b"abcd", bad, two)
        with pytest.raises(CodecError):
            decompressed_ends(scheme, b"abcd", bad, two, 100)
        with pytest.raises(CodecError):
            decompress_units(scheme, b"abcd", bad, ends, out)
        with pytest.raises(CodecError):
            decompress_units(scheme, b"abcd", ends, bad, bytearray(4))
    with pytest.raises(CodecError, match="out_ends"):
        compress_units(scheme, None, b"abcd", ends, two[:1])
    with pytest.raises(CodecError, match="bitmap"):
        compress_units(scheme, None, b"abcd", ends, two, validity=b"")
    with pytest.raises(CodecError, match="null"):
        decompressed_ends(scheme, b"abcd", ends, two, 100, validity=b"\0")
    with pytest.raises(CodecError, match="start"):
        compress_units(scheme, None, b"abcd", ends, two, -1)
    with pytest.raises(TypeError):
        compress_units(scheme, None, b"abcd", ends.astype(np.int32), two)
    with pytest.raises((TypeError, BufferError)):
        decompress_units(scheme, b"abcd", ends, ends, bytes(4))


def test_unknown_scheme() -> None:
    with pytest.raises(ValueError, match="snappy"):
        compress("snappy", None, b"")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="snappy"):
        decompress("snappy", b"", max_size=0)  # type: ignore[arg-type]


@schemes
def test_threads(scheme: Scheme) -> None:
    """Threads that compress different data at the same time do not share contexts."""
    failures: list[int] = []

    def work(seed: int) -> None:
        content = random.Random(seed).randbytes(3000) * 20
        for _ in range(30):
            back = decompress(scheme, compress(scheme, None, content), expected_size=len(content))
            failures.extend([seed] if back != content else [])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_lz4_blocks_of_literals_are_read() -> None:
    """LZ4 blocks of literals only are decompressed, as a writer without LZ4 may produce them."""
    content = bytes(range(14))
    assert decompress("lz4", (14).to_bytes(4, "little") + b"\xe0" + content, expected_size=14) == content
    assert lz4.block.decompress(compress("lz4", None, content)) == content
