"""Tests of random pages of 2.0, each encoded by a model, read back in ranges and by row number."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import lance.file
import lz4.block
import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.pages import array_page as ap
from support.pages.array_page import TreeColumn, TreePage, write_columns

from lance_dataset import file
from lance_dataset._proto import encodings_pb2 as pb
from lancecodec import fsst

ZSTD = zstandard.ZstdCompressor()
LANES = (0, 4, 2, 6, 1, 5, 3, 7)
SYMBOLS = [b"ab", b"hello", b"x", b"the ", b"and", b"12345678"]

examples = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


class Model:
    """Encoder of the values of one page. It collects buffers in the order in which a reader needs them."""

    def __init__(self, rng: random.Random, reference: bool) -> None:
        self.rng = rng
        self.reference = reference
        self.buffers: list[bytes] = []

    def add(self, content: bytes) -> int:
        self.buffers.append(content)
        return len(self.buffers) - 1

    def maybe(self, encoding: pb.ArrayEncoding) -> pb.ArrayEncoding:
        return ap.no_nulls(encoding) if self.rng.random() < 0.5 else encoding

    # -- fixed width -------------------------------------------------------------------------------------------------

    def flat(self, content: bytes, bits: int) -> pb.ArrayEncoding:
        scheme = self.rng.choice(["", "", "none", "zstd", "bare", "lz4"])
        if scheme in ("zstd", "bare"):
            framed = ZSTD.compress(content)
            prefix = struct.pack("<Q", len(content)) if scheme == "zstd" else b""
            return ap.flat(bits, self.add(prefix + framed), "zstd")
        if scheme == "lz4":
            return ap.flat(bits, self.add(lz4.block.compress(content)), "lz4")
        return ap.flat(bits, self.add(content), scheme or None)

    def numbers(self, values: Sequence[int], bits: int, signed: bool) -> pb.ArrayEncoding:
        """Encode numbers without nulls."""
        content = b"".join(value.to_bytes(bits // 8, "little", signed=signed) for value in values)
        least, most = min(values, default=0), max(values, default=0)
        kind = self.rng.choice(["flat", "stream", "blocks"])
        if kind == "stream":
            width = max(most.bit_length(), (-least - 1).bit_length() if least < 0 else 0, 1)
            width = min(bits, width + (least < 0) + self.rng.randrange(2))
            return ap.bitpacked(width, bits, self.add(bit_stream(values, width)), signed and least < 0)
        if kind == "blocks" and least >= 0:
            width = min(bits, max(most.bit_length(), 1) + self.rng.randrange(2))
            return ap.bitpacked_blocks(width, bits, self.add(bit_blocks(values, bits, width)))
        return self.flat(content, bits)

    def nullable(self, values: Sequence[object], encode: Callable[[list], pb.ArrayEncoding]) -> pb.ArrayEncoding:
        """Encode nulls around the values that `encode` encodes, which may put anything in their slots."""
        if all(value is None for value in values):
            return ap.all_nulls()
        if all(value is not None for value in values):
            return self.maybe(encode(list(values)))
        validity = ap.flat(1, self.add(bits_of([value is not None for value in values])))
        some = next(value for value in values if value is not None)
        return ap.some_nulls(validity, encode([some if value is None else value for value in values]))

    def integers(self, values: Sequence[int | None], bits: int, signed: bool) -> pb.ArrayEncoding:
        return self.nullable(values, lambda filled: self.numbers(filled, bits, signed))

    def vectors(self, values: Sequence[list | None], bits: int, size: int) -> pb.ArrayEncoding:
        def encode(filled: list) -> pb.ArrayEncoding:
            items = [item for vector in filled for item in vector]
            return ap.fixed_size_list(size, self.integers(items, bits, True))

        return self.nullable(values, encode)

    # -- strings -----------------------------------------------------------------------------------------------------

    def strings(self, values: Sequence[bytes | None], kind: pa.DataType) -> pb.ArrayEncoding:
        narrow = pa.types.is_string(kind) or pa.types.is_binary(kind)
        ways = ["binary", "binary", "fsst", "dictionary"]
        if self.reference and not narrow:
            ways = ["binary"]
        present = [value for value in values if value is not None]
        if not present and self.rng.random() < 0.5:
            return ap.all_nulls()
        lengths = {len(value) for value in present}
        if len(lengths) == 1:
            ways.append("fixed")
        way = self.rng.choice(ways)
        if way == "fixed":
            return self.nullable(values, lambda filled: self.fixed_size_binary(filled))
        if way == "fsst":
            table = bytearray(fsst.TABLE_SIZE)
            fsst.write_table(SYMBOLS, table)
            return ap.fsst(self.binary([None if value is None else coded(value) for value in values]), bytes(table))
        if way == "dictionary":
            return self.dictionary(values)
        return self.binary(values)

    def binary(self, values: Sequence[bytes | None]) -> pb.ArrayEncoding:
        total = sum(len(value) for value in values if value is not None)
        adjustment = total + 1 + self.rng.choice([0, 0, 100])
        ends, end = [], 0
        for value in values:
            end += 0 if value is None else len(value)
            ends.append(end + (adjustment if value is None else 0))
        indices = self.maybe(self.numbers(ends, 64, False))
        content = b"".join(value for value in values if value is not None)
        return ap.binary(indices, self.maybe(self.flat(content, 8)), adjustment)

    def fixed_size_binary(self, values: list[bytes]) -> pb.ArrayEncoding:
        width = len(values[0])
        whole = width in (1, 2, 3, 5) and not self.reference and self.rng.random() < 0.5
        return ap.fixed_size_binary(self.maybe(self.flat(b"".join(values), 8 * width if whole else 8)), width)

    def dictionary(self, values: Sequence[bytes | None]) -> pb.ArrayEncoding:
        items = sorted({value for value in values if value is not None})
        if len(items) > 250 or not items:
            return self.binary(values)
        places = {item: number for number, item in enumerate(items, 1)}
        indices = self.maybe(self.flat(bytes(places.get(value, 0) for value in values), 8))
        return ap.dictionary(indices, self.binary(items), len(items))


def bits_of(values: Sequence[bool]) -> bytes:
    number = sum(1 << place for place, value in enumerate(values) if value)
    return number.to_bytes((len(values) + 7) // 8, "little")


def bit_stream(values: Sequence[int], width: int) -> bytes:
    number = 0
    for place, value in enumerate(values):
        number |= (value & ((1 << width) - 1)) << place * width
    return number.to_bytes((len(values) * width + 7) // 8, "little")


def bit_blocks(values: Sequence[int], bits: int, width: int) -> bytes:
    out = bytearray()
    lanes = 1024 // bits
    for start in range(0, len(values), 1024):
        block = [*values[start : start + 1024]]
        block += [0] * (1024 - len(block))
        words = [[0] * lanes for _ in range(width)]
        for lane in range(lanes):
            number = 0
            for row in range(bits):
                number |= block[LANES[row // 8] * 16 + row % 8 * 128 + lane] << row * width
            for word in range(width):
                words[word][lane] = number >> word * bits & ((1 << bits) - 1)
        out += b"".join(value.to_bytes(bits // 8, "little") for line in words for value in line)
    return bytes(out)


def coded(value: bytes) -> bytes:
    out, at = bytearray(), 0
    while at < len(value):
        found = next((code for code, symbol in enumerate(SYMBOLS) if value.startswith(symbol, at)), None)
        if found is None:
            out += bytes([255, value[at]])
            at += 1
        else:
            out.append(found)
            at += len(SYMBOLS[found])
    return bytes(out)


# -- columns ---------------------------------------------------------------------------------------------------------

INTEGERS = {bits: getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)}
TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


def random_integers(rng: random.Random, count: int, bits: int) -> list[int | None]:
    most = 1 << rng.randrange(1, bits)
    least = rng.choice([0, -most])
    nulls = rng.choice([0, 0, 0.3, 1])
    return [None if rng.random() < nulls else rng.randrange(least, most) for _ in range(count)]


def random_texts(rng: random.Random, count: int) -> list[bytes | None]:
    nulls = rng.choice([0, 0.3, 1])
    same = rng.random() < 0.3
    words = [b"", b"hello", b"x", "é".encode(), b"the hello and 12345678", b"zz" * 20]
    word = rng.choice(words)
    return [None if rng.random() < nulls else word if same else rng.choice(words) for _ in range(count)]


def random_page(rng: random.Random, kind: pa.DataType, count: int, reference: bool) -> tuple[TreePage, list]:
    model = Model(rng, reference)
    if pa.types.is_integer(kind):
        values: list = random_integers(rng, count, kind.bit_width)
        return TreePage(model.integers(values, kind.bit_width, True), model.buffers, count), values
    if pa.types.is_fixed_size_list(kind):
        size, bits = kind.list_size, kind.value_type.bit_width
        flat = random_integers(rng, count * size, bits)
        values = [flat[row * size : (row + 1) * size] if rng.random() < 0.8 else None for row in range(count)]
        return TreePage(model.vectors(values, bits, size), model.buffers, count), values
    texts = random_texts(rng, count)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    page = TreePage(model.strings(texts, kind), model.buffers, count)
    return page, [None if text is None else text.decode() if is_text else text for text in texts]


KINDS = [*INTEGERS.values(), pa.list_(pa.int16(), 3), *TEXTS]


def check(path: Path, expected: list, rng: random.Random, mapped: bool) -> None:
    reader = file.LanceFileReader(path, None if mapped else {"mmap": "false"})
    whole = reader.read_all(batch_size=len(expected)).to_table()
    whole.validate(full=True)
    assert whole.column(0).to_pylist() == expected
    for _ in range(4):
        start = rng.randrange(len(expected))
        size = rng.randrange(1, len(expected) - start + 1)
        found = reader.read_range(start, size).to_table()
        found.validate(full=True)
        assert found.column(0).to_pylist() == expected[start : start + size]
        rows = [rng.randrange(len(expected)) for _ in range(rng.choice([1, 5, 200]))]
        found = reader.take_rows(rows).to_table()
        found.validate(full=True)
        assert found.column(0).to_pylist() == [expected[row] for row in rows]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@examples
@given(
    seed=st.integers(0, 2**32),
    counts=st.lists(st.sampled_from([0, 1, 7, 8, 9, 100, 1023, 1025]), min_size=1, max_size=4),
)
def test_random_pages(tmp_path: Path, kind: pa.DataType, seed: int, counts: list[int]) -> None:
    rng = random.Random(seed)
    reference = rng.random() < 0.5
    made = [random_page(rng, kind, count, reference) for count in counts]
    expected = [value for _, values in made for value in values]
    column = TreeColumn([page for page, _ in made])
    path = write_columns(tmp_path / f"{seed}.lance", pa.schema([pa.field("a", kind)]), [column], len(expected))
    if expected:
        check(path, expected, rng, mapped=True)
        check(path, expected, rng, mapped=False)
        if reference:
            theirs = lance.file.LanceFileReader(str(path)).read_all().to_table()
            assert theirs.column(0).to_pylist() == expected
    path.unlink()
