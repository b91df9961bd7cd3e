"""Tests of encodings of words, postings and positions in full-text indices: format notes, and round trips."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.text.block_model import encode_blocks
from support.text.impact_model import encode_impacts

from lance_dataset.index.text.bit_lanes import bit_widths, pack_blocks, packed_size, unpack_blocks
from lance_dataset.index.text.fst_reader import read_fst
from lance_dataset.index.text.fst_writer import write_fst
from lance_dataset.index.text.positions import decode_steps, encode_steps
from lance_dataset.index.text.posting_blocks import BlockFormat, Postings, decode_blocks
from lance_dataset.index.text.posting_rows import IMPACTS, MAX_SCORE, POSITION_OFFSETS, POSITIONS, POSTING, ListEncoder
from lance_dataset.index.text.scoring import Corpus, decode_lengths, length_codes
from lance_dataset.index.text.varints import decode_varints, encode_varints

FORMATS = [BlockFormat(128, fixed_tail=True), BlockFormat(128, fixed_tail=False), BlockFormat(256, fixed_tail=False)]
SEEDS = st.integers(0, 1 << 32)


def packed(values: list[int]) -> bytes:
    numbers = np.array([values], np.uint32)
    widths = bit_widths(numbers)
    out = np.zeros(int(packed_size(len(values), widths)[0]), np.uint8)
    pack_blocks(numbers, widths, out, np.zeros(1, np.int64))
    assert unpack_blocks(out, np.zeros(1, np.int64), widths, len(values)).tolist() == [values]
    return out.tobytes()


def test_packed_blocks() -> None:
    assert packed([number % 8 for number in range(128)]).hex() == (
        "20088220699aa669b22ccbb2fbbeeffb088220089aa6699a2ccbb22cbeeffbbe82200882a6699aa6cbb22ccbeffbbeef"
    )
    squares = packed([number * number % 100 for number in range(128)])
    assert hashlib.sha256(squares).hexdigest() == "f09b92ec9932e7eb4810970fbed90e59c4affba6355bc46fe0075715f2732979"
    wide = packed(list(range(256)))
    assert hashlib.sha256(wide).hexdigest() == "26fa7beef51456122cfcaf0d34fb887a3c0c285532a7183da5b7e877e781a6ad"


@given(SEEDS, st.sampled_from([128, 256]))
def test_packed_blocks_of_any_width(seed: int, block: int) -> None:
    random = np.random.default_rng(seed)
    packed((random.integers(0, 1 << 32, block) >> random.integers(0, 33)).tolist())


def test_full_block() -> None:
    postings = Postings(np.array([128]), 1000 + 3 * np.arange(128), np.ones(128, np.int64))
    blocks = encode_blocks(postings, np.array([0.5], np.float32), FORMATS[0])
    expected = bytes.fromhex("0000003fe803000002fc") + b"\xff" * 31 + b"\x01" + b"\xff" * 16
    assert blocks.data.tobytes() == expected


@given(st.lists(st.integers(0, (1 << 32) - 1)))
def test_varints(values: list[int]) -> None:
    decoded, ends = decode_varints(encode_varints(np.array(values, np.int64)))
    assert decoded.tolist() == values
    assert (np.diff(ends) > 0).all()


@pytest.mark.parametrize("data", [b"\x80", b"\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\x7f"])
def test_varints_that_are_none(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"number"):
        decode_varints(np.frombuffer(data, np.uint8))


def random_postings(seed: int) -> tuple[Postings, int]:
    """Draw lists of one to some hundred documents; some words occur very often in few documents."""
    random = np.random.default_rng(seed)
    documents = int(random.integers(1, 1200))
    lengths = random.integers(1, documents + 1, random.integers(1, 8))
    lengths[0] = documents
    found = [np.sort(random.choice(documents, length, replace=False)) for length in lengths]
    total = int(lengths.sum())
    often = random.integers(1, 4, total)
    often[random.random(total) < 0.03] = random.integers(1, 1 << random.integers(1, 12))
    return Postings(lengths, np.concatenate(found), often), documents


@given(SEEDS, st.sampled_from(FORMATS))
def test_blocks(seed: int, layout: BlockFormat) -> None:
    postings, documents = random_postings(seed)
    scores = np.arange(len(postings.block_sizes(layout.size)), dtype=np.float32)
    blocks = encode_blocks(postings, scores, layout)
    decoded = decode_blocks(blocks, postings.lengths, layout, documents)
    assert (decoded.documents == postings.documents).all()
    assert (decoded.frequencies == postings.frequencies).all()
    for changed in (postings.lengths[:-1], np.append(postings.lengths, 1)):
        with pytest.raises(ValueError, match="blocks, but"):
            decode_blocks(blocks, changed, layout, documents)
    with pytest.raises(ValueError, match="refers to document"):
        decode_blocks(blocks, postings.lengths, layout, documents - 1)


@given(SEEDS, st.sampled_from(FORMATS))
def test_rows_of_posting_lists(seed: int, layout: BlockFormat) -> None:
    """The kernels write what a model with whole arrays writes."""
    postings, documents = random_postings(seed)
    random = np.random.default_rng(seed + 1)
    lengths = random.integers(1, 1 << random.integers(1, 20), documents)
    corpus = Corpus(documents, int(lengths.sum()))
    encoder = ListEncoder(lengths, corpus, layout)
    made = encoder.scored(
        postings.lengths, postings.documents.astype(np.uint32), postings.frequencies.astype(np.uint32)
    )
    sizes, counts = postings.block_sizes(layout.size), postings.block_counts(layout.size)
    firsts, of = np.cumsum(sizes) - sizes, lengths[postings.documents]
    shares = corpus.shares(postings.frequencies, of if layout.size == 128 else decode_lengths(length_codes(of)))
    best = np.repeat(corpus.limits(postings.lengths), counts) * np.maximum.reduceat(shares, firsts)
    blocks = encode_blocks(postings, best, layout)
    data, ends, _ = encode_impacts(
        np.repeat(np.arange(len(sizes)), sizes),
        np.repeat(np.arange(len(counts)), counts),
        postings.documents[np.cumsum(sizes) - 1],
        postings.frequencies,
        of,
    )
    assert made[MAX_SCORE].to_numpy().tolist() == np.maximum.reduceat(best, np.cumsum(counts) - counts).tolist()
    for name, expected, starts in ((POSTING, blocks.data, blocks.starts), (IMPACTS, data, [0, *ends])):
        found = made[name].flatten()
        assert b"".join(found.to_pylist()) == expected.tobytes()
        assert [len(each.as_py()) for each in found] == np.diff(starts).tolist()
    steps = random.integers(0, 1 << random.integers(1, 30), int(postings.frequencies.sum()))
    often = np.add.reduceat(postings.frequencies, firsts)
    for packed in (True, False):
        rows = encoder.positions(
            postings.lengths,
            postings.frequencies.astype(np.uint32),
            steps.astype(np.uint32),
            "",
            packed=packed,
        )
        assert b"".join(rows[POSITIONS].to_pylist()) == encode_steps(steps, often, packed=packed).data.tobytes()
        assert len(rows[POSITION_OFFSETS].flatten()) == len(sizes)


@given(SEEDS, st.booleans())
def test_positions(seed: int, packed: bool) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(1, 600, random.integers(1, 6))
    steps = random.integers(0, 1 << random.integers(1, 30), int(counts.sum()))
    blocks = encode_steps(steps, counts, packed=packed)
    assert (decode_steps(blocks, counts, packed=packed) == steps).all()
    with pytest.raises(ValueError, match="positions"):
        decode_steps(blocks, counts + np.eye(1, len(counts), 0, dtype=np.int64)[0] * 1_000_000, packed=packed)


def test_impacts() -> None:
    one = np.zeros(3, np.int64)
    data, ends, counts = encode_impacts(one, one[:1], np.array([12]), np.array([1, 2, 5]), np.array([10, 9, 40]))
    assert (data.tobytes().hex(), ends.tolist(), counts.tolist()) == ("0c0203090511" * 2, [6, 12], [2])


def test_codes_of_lengths() -> None:
    lengths = np.array([0, 7, 8, 15, 16, 17, 31, 100, 1000, 65535])
    codes = length_codes(lengths)
    assert codes.tolist() == [0, 7, 8, 15, 16, 16, 23, 36, 63, 111]
    assert decode_lengths(codes).tolist() == [0, 7, 8, 15, 16, 16, 30, 96, 960, 61440]


GOLDEN = {
    "03000000000000000000000000000000001084cfcfc20201000300000000333231301104c7c2dad0d3001092cfc7c401020001071a776e68"
    "1103060000000000000039000000000000" + "00717f9b0c": [
        (b"hello", 0), (b"number0", 5), (b"number1", 2), (b"number2", 3), (b"number3", 4), (b"world", 1),
    ],
    "030000000000000000000000000000000001006211410200000162611102"
    "03000000000000001d0000000000000003a93149": [(b"a", 0), (b"ab", 1), (b"b", 2)],
}  # fmt: skip


@pytest.mark.parametrize("stored", GOLDEN)
def test_dictionaries(stored: str) -> None:
    entries = GOLDEN[stored]
    assert write_fst(entries).hex() == stored
    assert list(read_fst(bytes.fromhex(stored), len(entries), "index")) == entries


WORDS = st.binary(max_size=12) | st.text("abct", max_size=9).map(str.encode)
NUMBERS = st.integers(0, (1 << 64) - 1) | st.integers(0, 300)


@given(st.dictionaries(WORDS, NUMBERS, max_size=80))
@example({bytes([first]): first for first in range(256)})
@example({bytes([first, second]): first for first in range(70) for second in (0, 255)})
def test_dictionaries_of_any_words(words: dict[bytes, int]) -> None:
    entries = sorted(words.items())
    stored = write_fst(entries)
    assert list(read_fst(stored, len(entries), "index")) == entries
    with pytest.raises(ValueError, match="count of"):
        list(read_fst(stored, len(entries) - 1, "index"))


@given(st.dictionaries(WORDS, NUMBERS, max_size=30), st.data())
def test_damaged_dictionaries(words: dict[bytes, int], data: st.DataObject) -> None:
    stored = bytearray(write_fst(sorted(words.items())))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert len(list(read_fst(bytes(stored), 1000, "index"))) <= 1000
    except ValueError:
        return
