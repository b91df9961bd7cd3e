"""Tests of FastLanes bit packing against a NumPy model, golden vectors and the reference's chunks."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages.lance_page import Page, inline, mini_block, pages_of, read_back, write_pages

from lancecodec import CodecError, bitpacking

SIZES = [8, 16, 32, 64]
ORDER = [0, 4, 2, 6, 1, 5, 3, 7]

#: value size, width, first 16 bytes, last 8 bytes, SHA-256 of the block of i mod 2**width
GOLDEN = """
8 1 00ff00ff00ff00ff00ff00ff00ff00ff 00ff00ff00ff00ff 4e7304d2eb82b60c60a38fef79fbc4161d126134bc0b5aa0576d7bf8e24d0056
8 3 004992db246db6ff004992db246db6ff 0024496d92b6dbff 7945d0198a02bc9b0487f4d7328158ccc79f9c59cba41b9abba0c4e468265731
8 7 008102830485068708890a8b0c8d0e8f f1f3f5f7f9fbfdff 99c4593543b66f1096dbc9cbc2c74577e0081513aafd7012b708b926465a4b97
8 8 000102030405060708090a0b0c0d0e0f f8f9fafbfcfdfeff 785b0751fc2c53dc14a4ce3d800e69ef9ce1009eb327ccf458afe09c242c26c9
16 1 0000ffff0000ffff0000ffff0000ffff 0000ffff0000ffff f8eb0e02d90007b551c7a5e2b19751e837fc138afa3f76ca0cdf6a40d79511a5
16 3 000049929224dbb624496ddbb66dffff 4992dbb66ddbffff f949547d2b920f409dc21441e8ce7d412965a9ff3eac94d551362f689372db20
16 7 00008140028183c104028542068387c3 f3f9f7fbfbfdffff cd7672a325762bd9ca456c417b8613cc997c400e9c7fa3cd110a9fb6158f5405
16 8 00800181028203830484058506860787 7cfc7dfd7efe7fff 5729154e00116f012a7bd5b7afdf6d7793d782835df1b5449661ae9aa277fa3d
16 13 0000012002400360048005a006c007e0 e01fe81ff01ff81f 0b5b8ef24b7c213e0573fdebef724c72a1fb62329f51dba0d91597c6f53cba79
32 1 00000000ffffffff00000000ffffffff 00000000ffffffff b71fcb4609a62a16a6993dfd08d089d9274bd3e7af332e076db8ffe6d5a206c0
32 3 000000004992244992244992dbb66ddb dbb66ddbffffffff 7afe47fcd6854cf99d4e808b4f975ca7a2e0dc552ffb6953292b3d4d9445875f
32 7 00000000814020100281402083c16030 eff7fbfdffffffff 16f02eec2ce2d18d6ac9cb51e5768981332865bf8cf2ba9fbf15712b48e59bb5
32 8 00800080018101810282028203830383 7efe7efe7fff7fff 607f9792bc68174e3a693182efa0ea280ecff8de11da775286b341ea0fed87c8
32 13 0000100001201004024010080360100c 85dff01fc5dff81f 0f04ddd4fea4e2a73f8df73ee95e1ccefad58045f21bc07ecbd9af5b90a6f836
32 31 00000000010000800200000003000080 fc070000fe070000 bcb39d0f97054cabf52f083412060f10f57c33c625f21d303906c64545ba778a
64 1 0000000000000000ffffffffffffffff ffffffffffffffff dbf09f0f37760b214ee091eb4725daeaa30d66eaaec89940763da9633dd2660c
64 3 00000000000000004992244992244992 ffffffffffffffff 1c55f5c97bdf70f5354ed1a7d2540d3ede521a06b21c0c4f164b1e7dacc18a37
64 7 000000000000004081402010080402c1 7effffffffffffff 03ceb9aff8272541c83d5fc90f77246c324119f053dd7d9e8b938e948597b0cf
64 8 00800080008000800181018101810181 7fff7fff7fff7fff 2bf7ffea9523699614671a1596c38652dfb28beb66c6eb47721ee3d503b35b25
64 13 0000100004c000200120100484c01020 fff027fec5dff81f 17ea815093a94f185e726cdf3bd639f94d666cdc2a625893a4916c601169d031
64 31 00000000400000000100008040000040 fc0d0000fe070000 4bee0e09bd29b1382d114067732b3f53849a4c1d6fc543e842c9568ef219bdd4
64 45 00000000000010000100000000201000 0000f81f00000000 5f0a24f100d9bf8dc7584269d5476491ff6938d7db3e05505dcb494cd74c79d6
"""

sizes = st.sampled_from(SIZES)
counts = st.one_of(st.integers(0, 40), st.sampled_from([1023, 1024, 1025, 2048, 4097]), st.integers(0, 5000))
skews = st.sampled_from([0, 1, 3, 8])
seeds = st.integers(0, 2**32 - 1)


def dtype(bits: int) -> np.dtype:
    return np.dtype(f"<u{bits // 8}")


def random_values(seed: int, n: int, bits: int, width: int) -> np.ndarray:
    """Return random values below 2**width, some of them the smallest and largest."""
    rng = np.random.default_rng(seed)
    values = np.frombuffer(rng.bytes(n * bits // 8), dtype(bits)) & dtype(bits).type((1 << width) - 1)
    return np.where(rng.random(n) < 0.1, dtype(bits).type((1 << width) - 1), values)


def ragged(data: bytes | np.ndarray, skew: int) -> memoryview:
    return memoryview(b"." * skew + bytes(data))[skew:]


class Output:
    """An output buffer at a given address with guard bytes behind it."""

    def __init__(self, size: int, skew: int) -> None:
        self.whole = bytearray(b"\xa5" * (skew + size + 9))
        self.view = memoryview(self.whole)[skew : skew + size]

    def bytes(self, size: int | None = None) -> bytes:
        assert self.whole.endswith(b"\xa5" * 9)
        return bytes(self.view if size is None else self.view[:size])


def model_pack(values: np.ndarray, width: int) -> bytes:
    """Pack blocks of 1024 values, padded with zeros: the value of row r of a lane is at bits r * width of the lane."""
    bits = values.dtype.itemsize * 8
    lanes = 1024 // bits
    padded = np.concatenate([values, np.zeros(-len(values) % 1024, values.dtype)]).reshape(-1, 1024)
    out = np.zeros((len(padded), width, lanes), values.dtype)
    number = values.dtype.type
    for row in range(bits if width else 0):
        begin = ORDER[row // 8] * 16 + row % 8 * 128
        word, shift = divmod(row * width, bits)
        taken = padded[:, begin : begin + lanes]
        out[:, word] |= taken << number(shift)
        if shift + width > bits:
            out[:, word + 1] |= taken >> number(bits - shift)
    return out.tobytes()


def pack(values: np.ndarray, width: int, skew: int = 0) -> bytes:
    out = Output(bitpacking.packed_size(len(values), width), skew)
    bits = values.dtype.itemsize * 8
    assert bitpacking.pack(ragged(values, skew), bits, width, out.view) == len(out.view)
    return out.bytes()


def unpack(data: bytes, bits: int, width: int, start: int, stop: int, skew: int = 0) -> np.ndarray:
    out = Output((stop - start) * bits // 8, skew)
    assert bitpacking.unpack(ragged(data, skew), bits, width, start, stop, out.view) == stop - start
    return np.frombuffer(out.bytes(), dtype(bits))


def inline_encode(values: np.ndarray, skew: int = 0) -> tuple[bytes, np.ndarray]:
    bits = values.dtype.itemsize * 8
    out, ends = Output(bitpacking.inline_bound(len(values), bits), skew), np.zeros(-(-len(values) // 1024), np.int64)
    size = bitpacking.inline_encode(ragged(values, skew), bits, out.view, ends)
    assert size == (ends[-1] if len(ends) else 0)
    return out.bytes(size), ends


def out_of_line_encode(values: np.ndarray, width: int, skew: int = 0) -> bytes:
    bits = values.dtype.itemsize * 8
    out = Output(bitpacking.out_of_line_size(len(values), bits, width), skew)
    assert bitpacking.out_of_line_encode(ragged(values, skew), bits, width, out.view) == len(out.view)
    return out.bytes()


@pytest.mark.parametrize("line", GOLDEN.split("\n")[1:-1])
def test_golden_blocks(line: str) -> None:
    bits, width = map(int, line.split()[:2])
    first, last, digest = line.split()[2:]
    values = (np.arange(1024, dtype=np.uint64) & np.uint64((1 << width) - 1)).astype(dtype(bits))
    packed = pack(values, width)
    assert (packed[:16].hex(), packed[-8:].hex(), hashlib.sha256(packed).hexdigest()) == (first, last, digest)
    assert np.array_equal(unpack(packed, bits, width, 0, 1024), values)


@pytest.mark.parametrize("bits", SIZES)
@pytest.mark.parametrize("skew", [0, 1])
def test_every_width(bits: int, skew: int) -> None:
    positions = np.random.default_rng(bits).permutation(2048)
    for width in range(bits + 1):
        values = random_values(width, 2048, bits, width)
        packed = pack(values, width, skew)
        assert packed == model_pack(values, width)
        assert np.array_equal(unpack(packed, bits, width, 0, 2048, skew), values)
        for chosen in (positions, positions[:5], np.sort(positions), np.sort(positions[:20]), positions[:0]):
            out = Output(len(chosen) * bits // 8, skew)
            assert bitpacking.select(ragged(packed, skew), bits, width, chosen, out.view) == len(chosen)
            assert np.array_equal(np.frombuffer(out.bytes(), dtype(bits)), values[chosen])


@given(sizes, counts, skews, seeds, st.data())
def test_blocks(bits: int, n: int, skew: int, seed: int, data: st.DataObject) -> None:
    width = data.draw(st.integers(0, bits))
    values = random_values(seed, n, bits, width)
    packed = pack(values, width, skew)
    assert packed == model_pack(values, width)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    assert np.array_equal(unpack(packed, bits, width, start, stop, skew), values[start:stop])


@given(sizes, counts, skews, seeds, st.data())
def test_widths(bits: int, n: int, skew: int, seed: int, data: st.DataObject) -> None:
    values = random_values(seed, n, bits, data.draw(st.integers(0, bits)))
    blocks = [values[i : i + 1024] for i in range(0, n, 1024)]
    expected = [int(block.max()).bit_length() for block in blocks]
    widths = np.full(len(blocks) + 1, 99, np.uint8)
    assert bitpacking.block_widths(ragged(values, skew), bits, widths) == len(blocks)
    assert widths.tolist() == [*expected, 99]
    assert bitpacking.width(ragged(values, skew), bits) == max(expected, default=0)


@given(sizes, counts, skews, seeds, st.data())
def test_inline(bits: int, n: int, skew: int, seed: int, data: st.DataObject) -> None:
    values = random_values(seed, n, bits, bits)
    shifts = np.random.default_rng(seed).integers(0, bits + 1, -(-n // 1024)).repeat(1024)[:n]
    values = np.where(shifts == bits, 0, values >> np.minimum(shifts, bits - 1).astype(values.dtype))
    values = values.astype(dtype(bits))
    packed, ends = inline_encode(values, skew)
    expected, expected_ends = b"", []
    for block in (values[i : i + 1024] for i in range(0, n, 1024)):
        width = int(block.max()).bit_length()
        expected += width.to_bytes(bits // 8, "little") + model_pack(block, width)
        expected_ends.append(len(expected))
    assert packed == expected
    assert ends.tolist() == expected_ends
    out = Output(n * bits // 8, skew)
    bitpacking.inline_decode(ragged(packed, skew), ends, bits, n, out.view)
    assert out.bytes() == values.tobytes()
    if n and data.draw(st.booleans()):
        chunk, count = ragged(packed[: ends[0]], skew), min(n, 1024)
        positions = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=200)), np.int64)
        fewer = data.draw(st.integers(int(positions.max(initial=-1)) + 1, count))
        out = Output(len(positions) * bits // 8, skew)
        bitpacking.inline_block_select(chunk, bits, fewer, positions, out.view)
        assert out.bytes() == values[positions].tobytes()
        out = Output(fewer * bits // 8, skew)
        bitpacking.inline_block_decode(chunk, bits, fewer, out.view)
        assert out.bytes() == values[:fewer].tobytes()


@given(sizes, counts, skews, seeds, st.data())
def test_out_of_line(bits: int, n: int, skew: int, seed: int, data: st.DataObject) -> None:
    width = data.draw(st.integers(0, bits))
    values = random_values(seed, n, bits, width)
    full, tail = values[: n // 1024 * 1024], values[n // 1024 * 1024 :]
    packs_tail = 1024 * width // bits < len(tail)
    expected = model_pack(full, width) + (model_pack(tail, width) if packs_tail else tail.tobytes())
    packed = out_of_line_encode(values, width, skew)
    assert packed == expected
    for form in (packed, model_pack(values, width)):  # the tail may be packed even if that is longer
        out = Output(n * bits // 8, skew)
        same_size = len(tail) * bits // 8 == 128 * width  # read as plain values, which only the first form has
        if form is packed or not same_size:
            bitpacking.out_of_line_decode(ragged(form, skew), bits, width, n, out.view)
            assert out.bytes() == values.tobytes()
        if n and (form is packed or not same_size):
            positions = np.random.default_rng(seed).integers(0, n, data.draw(st.sampled_from([1, 3, 30, 300, 3000])))
            positions = np.sort(positions) if data.draw(st.booleans()) else positions
            out = Output(len(positions) * bits // 8, skew)
            bitpacking.out_of_line_select(ragged(form, skew), bits, width, n, positions, out.view)
            assert out.bytes() == values[positions].tobytes()


def test_inline_golden() -> None:
    packed, ends = inline_encode((np.arange(1024) % 1000).astype(np.uint32))
    assert ends.tolist() == [1284]
    assert packed[:20].hex() == "0a000000000002100104125002082290030c32d0"
    assert hashlib.sha256(packed).hexdigest() == "cd66f941ab0c334e0720d33d568734818c5338abfd80d4f26b8285b2e07f02d5"


def test_out_of_line_golden() -> None:
    values = (np.arange(1500) % 3 == 0).astype(np.uint16)
    packed = out_of_line_encode(values, 1)
    assert len(packed) == 256
    assert packed[:16].hex() == "49929224244949929224244949929224"
    assert hashlib.sha256(packed).hexdigest() == "6b70a7fedce878aab8e18f5c2991bda670a672bd2e69188610ac492731f93bd1"
    short = out_of_line_encode(values[:1030], 1)
    assert short == packed[:128] + bytes.fromhex("000000000100000000000100")


def test_free_choices_of_other_writers() -> None:
    """Widths above the minimum and any padding are read, as other writers may produce them."""
    values = np.arange(100, dtype=np.uint32)
    noise = np.concatenate([values, np.full(924, 2**20 - 1, np.uint32)])
    chunk = struct.pack("<I", 20) + model_pack(noise, 20)
    out = Output(400, 0)
    bitpacking.inline_block_decode(chunk, 32, 100, out.view)
    assert out.bytes() == values.tobytes()


def chunks_of(page: Page, version: str, buffers: int) -> list[list[bytes]]:
    """Return the buffers of each chunk of a page.

    In front of them are the sizes of the level buffers and of the value buffer. Each part is padded to 8 bytes.
    """
    words = np.frombuffer(page.buffers[0], "<u2" if version == "2.1" else "<u4")
    data, at, chunks = page.buffers[1], 0, []
    for word in words.tolist():
        chunk = data[at : at + ((word >> 4) + 1) * 8]
        header = struct.Struct("<H" + "H" * (buffers - 1) + ("H" if version == "2.1" else "I"))
        _, *lengths = header.unpack_from(chunk)
        begin, parts = -(-header.size // 8) * 8, []
        for length in lengths:
            parts.append(chunk[begin : begin + length])
            begin += -(-length // 8) * 8
        chunks.append(parts)
        at += len(chunk)
    return chunks


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("bits", SIZES)
def test_reference_writes_the_same_inline_chunks(version: str, bits: int) -> None:
    values = random_values(bits, 5000, bits, bits - 3)
    values[1024:2048] >>= dtype(bits).type(2)
    values[3072:4096] = 0
    [page] = pages_of(pa.array(values), version, {"lance-encoding:rle-threshold": "0.0"})
    assert page.mini["value_compression"] == inline(bits)
    packed, ends = inline_encode(values)
    assert b"".join(part for [part] in chunks_of(page, version, 1)) == packed
    assert len(ends) == 5


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("n", [5000, 4096 + 50])  # a packed and a plain tail
def test_reference_writes_the_same_out_of_line_levels(version: str, n: int) -> None:
    rng = np.random.default_rng(n)
    null = rng.random(n) < 0.3
    values = rng.integers(0, 2**40, n)
    [page] = pages_of(pa.array(values, mask=null), version)
    levels = page.mini["def_compression"]["out_of_line_bitpacking"]
    assert levels == {"uncompressed_bits_per_value": 16, "values": {"flat": {"bits_per_value": 1}}}
    chunks = chunks_of(page, version, 2)
    bounds = [*range(0, n, 1024), n]
    for (definition, _), start, stop in zip(chunks, bounds[:-1], bounds[1:], strict=True):
        expected = null[start:stop].astype(np.uint16)
        assert out_of_line_encode(expected, 1) == definition
        out = Output(2 * (stop - start), 0)
        bitpacking.out_of_line_decode(definition, 16, 1, stop - start, out.view)
        assert out.bytes() == expected.tobytes()


@pytest.mark.parametrize("bits", SIZES)
def test_reference_reads_our_inline_chunks(bits: int, tmp_path: Path) -> None:
    values = random_values(bits, 3000, bits, bits - 1)
    values[:1024] >>= dtype(bits).type(bits // 2)
    packed, ends = inline_encode(values)
    chunks, words = b"", []
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        chunk = struct.pack("<HH4x", 0, stop - start) + packed[start:stop]
        chunk += bytes(-len(chunk) % 8)
        words.append((len(chunk) // 8 - 1) << 4 | (10 if stop < ends[-1] else 0))
        chunks += chunk
    layout = mini_block(inline(bits), num_items=3000, version="2.1")
    page = Page(layout, [struct.pack(f"<{len(words)}H", *words), chunks], 3000)
    write_pages(tmp_path / "a.lance", pa.field("a", pa.from_numpy_dtype(dtype(bits))), [page], "2.1")
    assert read_back(tmp_path / "a.lance").to_pylist() == values.tolist()


def test_values_that_do_not_fit() -> None:
    values = np.zeros(3000, np.uint32)
    values[2999] = 8
    with pytest.raises(CodecError, match="does not fit 3 bits"):
        pack(values, 3)
    with pytest.raises(CodecError, match="does not fit 3 bits"):
        out_of_line_encode(values, 3)


@pytest.mark.parametrize(
    ("chunk", "n"),
    [
        (b"", 1),
        (b"\x01\x00\x00", 1),
        (struct.pack("<I", 33) + bytes(33 * 128), 1024),
        (struct.pack("<I", 2**32 - 1), 1),
        (struct.pack("<I", 3) + bytes(3 * 128 - 1), 5),
        (struct.pack("<I", 3) + bytes(3 * 128 + 1), 5),
        (struct.pack("<I", 0) + bytes(1), 5),
        (struct.pack("<I", 0), 1025),
        (struct.pack("<I", 0), -1),
    ],
)
def test_bad_inline_chunks(chunk: bytes, n: int) -> None:
    out = bytearray(8192)
    with pytest.raises(CodecError):
        bitpacking.inline_block_decode(chunk, 32, n, out)
    with pytest.raises(CodecError):
        bitpacking.inline_block_select(chunk, 32, n, np.zeros(1, np.int64), out)


def test_no_values_have_no_chunk() -> None:
    bitpacking.inline_block_decode(b"", 32, 0, bytearray())
    bitpacking.inline_decode(b"", np.zeros(0, np.int64), 32, 0, bytearray())
    bitpacking.out_of_line_decode(b"", 32, 5, 0, bytearray())


@pytest.mark.parametrize(
    ("size", "width", "n"),
    [
        (0, 3, 1),
        (1, 3, 1),
        (383, 3, 2048),
        (385, 3, 1024),
        (768, 3, 1024),
        (384, 3, 2048),
        (5, 0, 1),
        (1, 0, 1024),
        (0, 64, 2**62),
        (0, 1, 2**63 - 1),
        (384, 33, 5),
        (384, -1, 5),
        (384, 3, -1),
    ],
)
def test_bad_out_of_line_sizes(size: int, width: int, n: int) -> None:
    out = bytearray(16384)
    with pytest.raises(CodecError):
        bitpacking.out_of_line_decode(bytes(size), 32, width, n, out)
    with pytest.raises(CodecError):
        bitpacking.out_of_line_select(bytes(size), 32, width, n, np.zeros(1, np.int64), out)


def test_bad_arguments() -> None:
    out, block = bytearray(4096), bytes(3 * 128)
    position = np.zeros(1, np.int64)
    calls = [
        lambda: bitpacking.pack(bytes(12), 24, 3, out),
        lambda: bitpacking.pack(bytes(7), 32, 3, out),
        lambda: bitpacking.pack(bytes(8), 32, 33, out),
        lambda: bitpacking.pack(bytes(8), 32, 3, bytearray(383)),
        lambda: bitpacking.packed_size(2**62, 3),
        lambda: bitpacking.packed_size(-1, 3),
        lambda: bitpacking.unpack(block, 32, 3, 0, 1025, bytearray(9000)),
        lambda: bitpacking.unpack(block, 32, 3, 5, 4, out),
        lambda: bitpacking.unpack(block, 32, 3, -1, 4, out),
        lambda: bitpacking.unpack(block[1:], 32, 3, 0, 4, out),
        lambda: bitpacking.unpack(block, 32, 3, 0, 1024, out[:4095]),
        lambda: bitpacking.unpack(b"", 32, 0, 0, 2**62, out),
        lambda: bitpacking.unpack(b"x", 32, 0, 0, 1, out),
        lambda: bitpacking.select(block, 32, 3, position + 1024, out),
        lambda: bitpacking.select(block, 32, 3, position - 1, out),
        lambda: bitpacking.select(block, 32, 3, position, bytearray(3)),
        lambda: bitpacking.block_widths(bytes(8192), 32, bytearray(1)),
        lambda: bitpacking.inline_encode(bytes(8192), 32, bytearray(20000), position),
        lambda: bitpacking.inline_encode(bytes(4096), 32, bytearray(4099), position),
        lambda: bitpacking.inline_decode(struct.pack("<I", 0), position + 3, 32, 5, out),
        lambda: bitpacking.inline_decode(struct.pack("<I", 0), position + 5, 32, 5, out),
        lambda: bitpacking.inline_decode(struct.pack("<II", 0, 0), np.array([4, 0]), 32, 1025, bytearray(9000)),
        lambda: bitpacking.inline_decode(struct.pack("<I", 0), np.array([4, 4]), 32, 5, out),
        lambda: bitpacking.inline_block_select(struct.pack("<I", 0), 32, 5, position + 5, out),
        lambda: bitpacking.inline_block_decode(struct.pack("<I", 0), 32, 5, bytearray(19)),
        lambda: bitpacking.out_of_line_select(block, 32, 3, 5, position + 5, out),
        lambda: bitpacking.out_of_line_encode(bytes(4096), 32, 3, bytearray(383)),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(CodecError):
            pytest.fail(f"call {number} returned {call()}")
