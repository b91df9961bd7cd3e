"""Suffix arrays, wavelet trees and substring search against plain models, and damaged parts."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pytest

from lancecodec.errors import CodecError, OffsetOverflowError
from lancecodec.search import substrings, suffixes, wavelet

_LITERAL = [b"banana", b"band", b"", b"an\xc3\xa4"]


def _joined(documents: list[bytes], *, wide: bool = True) -> np.ndarray:
    ends = np.cumsum([0, *map(len, documents)]).astype(np.int64 if wide else np.int32)
    out = np.empty(int(ends[-1]) + len(documents) + 1, np.uint8)
    assert suffixes.join_documents(b"".join(documents), ends, wide, 254, 32, out) == len(out)
    return out


def _transformed(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order, found = np.empty(len(text), np.int32), np.empty(len(text), np.uint8)
    suffixes.suffix_array(text, order)
    suffixes.transform(text, order, found)
    return order, found


def _filled(transformed: np.ndarray) -> tuple[wavelet.Tree, np.ndarray, np.ndarray]:
    counts = np.empty(256, np.int64)
    wavelet.count_symbols(transformed, counts)
    tree = wavelet.Tree.of_counts(counts)
    sizes = np.empty(tree.num_nodes, np.int64)
    tree.sizes(counts, sizes)
    words = np.empty(int(((sizes + 63) // 64).sum()), np.uint64)
    tree.fill(transformed, counts, words)
    return tree, sizes, words


def _parts(documents: list[bytes], rate: int = 32, *, owned: bool = True) -> list[Any]:
    text = _joined(documents)
    order, transformed = _transformed(text)
    tree, sizes, words = _filled(transformed)
    starts = np.append(0, np.flatnonzero(text == 255)[:-1] + 1).astype(np.uint64)
    ends = order[len(order) - len(documents) :].astype(np.uint64)
    owners = (np.searchsorted(starts, ends, side="right") - 1).astype(np.uint16)
    names = np.arange(len(documents), dtype=np.uint64) + np.uint64(1 << 40)
    known = order[::rate].astype(np.uint64)
    return [len(text), rate, tree.to_bytes(), sizes, words, known, starts, names, owners if owned else b""]


def _located(partition: substrings.Partition, pattern: bytes) -> list[int]:
    out = np.empty(partition.num_documents, np.uint64)
    count = partition.locate(*partition.find(pattern), out)
    return [int(name) - (1 << 40) for name in out[:count]]


def test_documents_are_joined_as_in_the_files_of_the_reference() -> None:
    assert bytes(_joined(_LITERAL)) == b"banana\xffband\xff\xffan\xc3\xa4\xff\0"
    assert bytes(_joined([b"a\0b\xff"], wide=False)) == b"a\xfeb \xff\0"
    assert bytes(_joined([])) == b"\0"


def test_a_transform_and_its_tree_are_those_of_the_reference() -> None:
    """The bytes are those that pylance 14.0.2 wrote for the documents."""
    order, transformed = _transformed(_joined([b"banana", b"ab\x01q", b"band", b"ana"]))
    assert bytes(transformed) == b"\xffb\xffb\xffnbnna\x00\xffnaaaa\x01aadq"
    assert order[0] == len(order) - 1
    tree, sizes, words = _filled(_transformed(_joined([b"", b""]))[1])
    assert tree.to_bytes().hex() == "01000000010000000001ff000000"
    assert (sizes.tolist(), words.tolist()) == ([3], [0b011])


@pytest.mark.parametrize("seed", range(40))
def test_suffixes_are_in_order(seed: int) -> None:
    draw = random.Random(seed)
    symbols = draw.choice([1, 2, 3, 20, 250])
    text = bytes(1 + draw.randrange(symbols) for _ in range(draw.choice([0, 1, 2, 50, 700]))) + b"\0"
    order = np.empty(len(text), np.int32)
    suffixes.suffix_array(text, order)
    assert order.tolist() == sorted(range(len(text)), key=lambda start: text[start:])


@pytest.mark.parametrize("unit", [b"a", b"ab", b"aab", bytes(range(1, 250))])
def test_suffixes_of_periodic_texts(unit: bytes) -> None:
    text = unit * (30_000 // len(unit)) + b"\0"
    order = np.empty(len(text), np.int32)
    suffixes.suffix_array(text, order)
    ranks = np.empty(len(text) + 1, np.int64)
    ranks[order], ranks[len(text)] = np.arange(len(text)), -1
    symbols, after = np.frombuffer(text, np.uint8)[order].astype(int), ranks[order + 1]
    assert ((np.diff(symbols) > 0) | ((np.diff(symbols) == 0) & (np.diff(after) > 0))).all()


@pytest.mark.parametrize("seed", range(60))
def test_substrings_are_found_in_the_documents_that_have_them(seed: int) -> None:
    draw = random.Random(seed)
    symbols = draw.choice([1, 2, 4, 26, 254])
    sizes = draw.choice([(0, 3), (0, 1, 40), (500,)])
    documents = [
        bytes(1 + draw.randrange(symbols) for _ in range(draw.choice(sizes))).replace(b"\xfe", b"")
        for _ in range(draw.choice([1, 2, 60]))
    ]
    partition = substrings.Partition(*_parts(documents, draw.choice([1, 2, 7, 32, 5000]), owned=draw.random() < 0.5))
    text = np.empty(partition.size, np.uint8)
    partition.text(text)
    assert bytes(text) == bytes(_joined(documents))
    for _ in range(40):
        source = draw.choice(documents)
        start = draw.randrange(len(source) + 1)
        pattern = source[start : start + draw.choice([1, 1, 2, 5])] + draw.choice([b"", b"", b"\x01", b"\xfd"])
        expected = [number for number, each in enumerate(documents) if pattern in each]
        found = _located(partition, pattern)
        assert found == expected if pattern else len(found) == len(documents), pattern


@pytest.mark.parametrize("owned", [False, True])
def test_long_ways_to_a_known_row_take_no_longer_than_the_text(owned: bool) -> None:
    partition = substrings.Partition(*_parts([b"a" * 100_000, b"b", b"a" * 50_000 + b"c"], 4096, owned=owned))
    assert _located(partition, b"ac") == [2]
    assert _located(partition, b"aaaa") == [0, 2]
    assert partition.way <= 4096


def test_paths_of_codes_have_up_to_32_steps() -> None:
    counts = np.zeros(256, np.int64)
    counts[:2] = 1
    for symbol in range(2, 60):
        counts[symbol] = counts[symbol - 1] + counts[symbol - 2]
    codes, place, lengths = wavelet.Tree.of_counts(counts).codes(), 0, []
    for _ in range(256):
        bits, length, nodes = struct.unpack_from("<IBH", codes, place)
        assert nodes == length
        assert bits < 1 << length
        lengths.append(length)
        place += 7 + 4 * nodes
    assert place == len(codes)
    assert max(lengths) <= 32
    assert sum(2.0**-length for length in lengths if length) == 1


def test_block_ranks() -> None:
    words = np.random.default_rng(1).integers(0, 1 << 64, 100, np.uint64)
    out = np.empty(15, np.uint64)
    wavelet.block_ranks(words, 7, out)
    ones = np.unpackbits(words.view(np.uint8)).reshape(100, 64).sum(axis=1)
    assert out.tolist() == [int(ones[: 7 * block].sum()) for block in range(15)]


def test_hexadecimal_digits() -> None:
    out = np.empty(3, np.uint8)
    substrings.decode_hex(b"00fFA9", out)
    assert out.tolist() == [0, 255, 169]
    for digits in (b"00fFA", b"00fFAg", b"00fF A", b"00f/:@"):
        with pytest.raises(CodecError):
            substrings.decode_hex(digits, out)


# -- damage ----------------------------------------------------------------------------------------------------------


def test_texts_that_cannot_be_sorted_are_errors() -> None:
    order = np.empty(4, np.int32)
    for text in (b"abcd", b"a\0b\0", b"ab\0"):
        with pytest.raises(CodecError):
            suffixes.suffix_array(text, order)
    with pytest.raises(CodecError):
        suffixes.transform(b"abc\0", order, np.empty(3, np.uint8))
    with pytest.raises(CodecError, match="aligned"):
        suffixes.suffix_array(b"abc\0", np.empty(17, np.uint8)[1:].view(np.int32))


def test_documents_that_do_not_fit_are_errors() -> None:
    with pytest.raises(OffsetOverflowError):
        suffixes.join_documents(b"abc", np.array([0, 3]), True, 254, 32, np.empty(4, np.uint8))
    for ends in ([0, 4], [2, 1], [-1, 2]):
        with pytest.raises(CodecError):
            suffixes.join_documents(b"abc", np.array(ends), True, 254, 32, np.empty(9, np.uint8))
    with pytest.raises(CodecError):
        suffixes.join_documents(b"abc", b"123", True, 254, 32, np.empty(9, np.uint8))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        struct.pack("<I", 1),
        struct.pack("<IBIBI", 1, 1, 5, 1, 5),
        struct.pack("<IBIBI", 1, 0, 0, 1, 5),
        struct.pack("<IBIBI", 1, 2, 0, 1, 5),
        struct.pack("<IBIBI", 1, 1, 256, 1, 5),
        struct.pack("<IBIBIBIBI", 2, 1, 0, 1, 1, 1, 2, 1, 3),
        struct.pack("<IBIBIBIBI", 2, 0, 1, 0, 1, 1, 2, 1, 3),
        struct.pack("<IBIBIBIBI", 2, 0, 1, 1, 1, 0, 0, 1, 3),
        struct.pack("<I", 0x80000000),
    ],
)
def test_bytes_that_are_not_a_tree(data: bytes) -> None:
    with pytest.raises(CodecError):
        wavelet.Tree.parse(data)


def test_trees_that_do_not_fit_the_text() -> None:
    text = np.frombuffer(b"abcabc", np.uint8)
    counts, other = np.empty(256, np.int64), np.zeros(256, np.int64)
    wavelet.count_symbols(text, counts)
    other[97:99] = 3
    tree = wavelet.Tree.of_counts(other)
    for given, size in ((counts, 8), (other, 8), (counts[:9], 8)):
        with pytest.raises(CodecError):
            tree.fill(text, given, np.empty(size, np.uint8))
    with pytest.raises(CodecError):
        wavelet.Tree.of_counts(counts).fill(text, counts, np.empty(8, np.uint8))
    with pytest.raises(CodecError):
        wavelet.Tree.of_counts(np.arange(256) // 255)
    with pytest.raises(CodecError):
        wavelet.Tree.of_counts(np.full(256, -1))


@pytest.mark.parametrize("part", range(9))
def test_parts_that_contradict_each_other(part: int) -> None:
    """Parts of a wrong size are errors; wrong content is one, or leads to wrong documents, but nowhere else."""
    good = _parts([b"some words", b"", b"more of them"] * 30)
    if part > 1:
        for data in (bytes(good[part])[:-1], bytes(good[part]) + b"\0"):
            with pytest.raises(CodecError):
                substrings.Partition(*good[:part], data, *good[part + 1 :])
    for seed in range(60):
        draw = np.random.default_rng(seed)
        if part < 2:
            changed: Any = int(draw.choice([0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, good[part] + 1]))
        else:
            changed = np.frombuffer(bytes(good[part]), np.uint8).copy()
            changed[draw.integers(len(changed))] ^= 1 << draw.integers(8)
        try:
            partition = substrings.Partition(*good[:part], changed, *good[part + 1 :])
            partition.text(np.empty(partition.size, np.uint8))
            assert len(_located(partition, b"o")) <= 90
            assert len(_located(partition, b"of")) <= 90
        except CodecError:
            continue


def test_transforms_whose_steps_go_in_a_circle() -> None:
    """The symbols of this transform lead from row 0 to row 0; it is not that of a text."""
    transformed = np.frombuffer(b"\0" + b"ab" * 400 + b"\xff", np.uint8)
    tree, sizes, words = _filled(transformed)
    known = np.zeros(-(-len(transformed) // 32), np.uint64)
    one = np.zeros(1, np.uint64)
    partition = substrings.Partition(len(transformed), 32, tree.to_bytes(), sizes, words, known, one, one)
    with pytest.raises(CodecError):
        partition.text(np.empty(len(transformed), np.uint8))
    for pattern in (b"a", b"b", b""):
        try:
            assert _located(partition, pattern) == [-(1 << 40)]
        except CodecError:
            continue


def test_rows_and_outputs_are_checked() -> None:
    partition = substrings.Partition(*_parts(_LITERAL))
    out = np.empty(4, np.uint64)
    for rows in ((-1, 3), (0, partition.size + 1)):
        with pytest.raises(CodecError):
            partition.locate(*rows, out)
    assert partition.locate(3, 2, out) == 0
    with pytest.raises(CodecError):
        partition.locate(0, 1, out[:3])
    with pytest.raises(CodecError):
        partition.text(np.empty(partition.size + 1, np.uint8))
    assert partition.nbytes > 4 * 14
    assert len(partition.first_rows()) == 257 * 8
