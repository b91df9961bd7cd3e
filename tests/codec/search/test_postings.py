"""Tests of posting lists: literal blocks, all widths, damage, and searches against plain sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.text.block_model import encode_blocks
from support.text.impact_model import encode_impacts

from lance_dataset.index.text.byte_ranges import Ints
from lance_dataset.index.text.positions import encode_steps
from lance_dataset.index.text.posting_blocks import BlockFormat, Postings
from lance_dataset.index.text.scoring import Corpus, decode_lengths
from lancecodec.errors import CodecError, OffsetOverflowError
from lancecodec.search import postings
from lancecodec.search.postings import Phrase, Positions, Term, search

DOCUMENTS = 4000
FORMATS = [BlockFormat(128, False), BlockFormat(128, True), BlockFormat(256, False)]


def opened(documents: Ints, frequencies: Ints, layout: BlockFormat, count: int = DOCUMENTS) -> Term:
    """Return a list that the writer of index files has encoded."""
    lists = Postings(np.array([len(documents)]), documents, frequencies)
    blocks = encode_blocks(lists, np.zeros(-(-len(documents) // layout.size), np.float32), layout)
    return Term(blocks.data, blocks.starts, len(documents), count, layout.size, layout.fixed_tail)


def decoded(term: Term) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    found = np.empty(term.length, np.uint32), np.empty(term.length, np.uint32)
    term.decode(*found)
    return found


def test_literal_block() -> None:
    """A block of the documents 1000, 1003, 1006 ... with the frequency 1, as the reference writes it."""
    data = bytes.fromhex("0000003f e8030000 02 fc" + "ff" * 31 + "01" + "ff" * 16)
    term = Term(data, np.array([0, len(data)]), 128, 2000, 128, False)
    documents, frequencies = decoded(term)
    assert documents.tolist() == list(range(1000, 1384, 3))
    assert set(frequencies.tolist()) == {1}


@pytest.mark.parametrize("layout", FORMATS, ids=str)
def test_widths_and_lengths(layout: BlockFormat) -> None:
    """Lists of any length with differences and frequencies of any number of bits are read as they were written."""
    rng = np.random.default_rng(1)
    for width in range(1, 23, 3):
        for length in (1, 2, 127, 128, 129, 255, 256, 257, 600):
            steps = rng.integers(1, 1 << min(width, 20), length, endpoint=True)
            documents = np.cumsum(steps)
            frequencies = rng.integers(1, 1 << width, length, endpoint=True)
            if length > 300:
                frequencies[::97] = rng.integers(1, 1 << 32, len(frequencies[::97]))
            found = decoded(opened(documents, frequencies, layout, int(documents[-1]) + 1))
            assert (found[0] == documents).all()
            assert (found[1] == frequencies).all()


@pytest.mark.parametrize("layout", FORMATS, ids=str)
def test_damage(layout: BlockFormat) -> None:
    """Truncated, extended and changed bytes are refused, or give ascending documents below their number."""
    rng = np.random.default_rng(2)
    documents = np.sort(rng.choice(DOCUMENTS, 300, replace=False))
    lists = Postings(np.array([300]), documents, rng.integers(1, 9, 300))
    blocks = encode_blocks(lists, np.zeros(-(-300 // layout.size), np.float32), layout)
    good = blocks.data.tobytes()
    for cut in range(1, len(good), 7):
        ends = np.minimum(blocks.starts, len(good) - cut)
        with pytest.raises(CodecError):
            decoded(Term(good[:-cut], ends, 300, DOCUMENTS, layout.size, layout.fixed_tail))
    for _ in range(1000):
        data = bytearray(good)
        data[rng.integers(len(data))] = rng.integers(256)
        try:
            found, _ = decoded(Term(data, blocks.starts, 300, DOCUMENTS, layout.size, layout.fixed_tail))
        except CodecError:
            continue
        assert (np.diff(found.astype(np.int64)) > 0).all()
        assert int(found[-1]) < DOCUMENTS


def test_wrong_arguments() -> None:
    """Counts, offsets and outputs that do not fit are refused."""
    layout = FORMATS[0]
    term = opened(np.arange(9), np.ones(9, np.int64), layout)
    for length, documents, size in ((0, 9, 128), (10, 9, 128), (9, 1 << 33, 128), (9, 9, 64), (200, 900, 128)):
        with pytest.raises(CodecError):
            Term(bytes(60), np.array([0, 60]), length, documents, size, False)
    for offsets in ([0], [0, 61], [-1, 60], [50, 40]):
        with pytest.raises(CodecError):
            Term(bytes(60), np.array(offsets), 9, 9, 128, False)
    norms = np.ones(DOCUMENTS, np.float32)
    out = np.empty(5, np.uint32), np.empty(5, np.float32)
    with pytest.raises(CodecError):
        term.bound_by_documents(norms[:-1])
    with pytest.raises(CodecError):
        search([term], np.ones(1, np.float32), norms[:-1], None, False, 0, -1.0, *out)
    with pytest.raises(CodecError):
        search([term], np.full(1, np.nan, np.float32), norms, None, False, 0, -1.0, *out)
    with pytest.raises(CodecError):
        search([term], np.ones(1, np.float32), norms, bytes(3), False, 0, -1.0, *out)
    with pytest.raises(OffsetOverflowError):
        search([term], np.ones(1, np.float32), norms, None, False, 0, -1.0, *out)
    with pytest.raises(CodecError):
        Phrase(np.zeros(2, np.int32), np.zeros(1, np.int32), 0)
    with pytest.raises(CodecError):
        Positions(bytes(9), np.array([0, 10]), None, postings.PACKED)


# -- searches ----------------------------------------------------------------------------------------------------


#: Documents of the corpora, and of each word: few together for a search by documents, or many for one by windows.
CORPUS = 20_000
QUERIES = 60
COUNTS = (5, 90, 200, 700, 6000, 19_000)


class Corpora:
    """Random texts, and their words as posting lists."""

    def __init__(self, seed: int, layout: BlockFormat, bounds: str) -> None:
        rng = np.random.default_rng(seed)
        self.lengths = rng.integers(1, 60, CORPUS)
        self.corpus = Corpus(CORPUS, int(self.lengths.sum()))
        self.norms = self.corpus.norms(self.lengths)
        self.terms: list[Term] = []
        self.weights: list[float] = []
        self.shares: list[NDArray[np.float32]] = []
        for count in COUNTS:
            documents = np.sort(rng.choice(CORPUS, count, replace=False))
            frequencies = np.minimum(rng.zipf(2.0, count), 200)
            term = opened(documents, frequencies, layout, CORPUS)
            if bounds == "exact":
                term.bound_by_documents(self.norms)
            elif bounds == "impacts":
                blocks = np.arange(count) // layout.size
                last = documents[np.append(np.flatnonzero(np.diff(blocks)), count - 1)]
                lengths = self.lengths[documents]
                data, ends, _ = encode_impacts(blocks, np.zeros(blocks[-1] + 1, np.int64), last, frequencies, lengths)
                codes = self.corpus.norms(decode_lengths(np.arange(256)))
                term.bound_by_impacts(data, np.append(0, ends), codes)
            shares = np.zeros(CORPUS, np.float32)
            shares[documents] = self.corpus.shares(frequencies, self.lengths[documents])
            self.terms.append(term)
            self.shares.append(shares)
            self.weights.append(float(self.corpus.limits(np.array([count]))[0]))

    def expected(self, words: list[int], every: bool) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        scores = np.zeros(CORPUS, np.float32)
        for word in words:
            scores += np.float32(self.weights[word]) * self.shares[word]
        has = np.array([self.shares[word] > 0 for word in words])
        return scores, has.all(axis=0) if every else has.any(axis=0)

    def found(self, words: list[int], every: bool, best: int, allowed: Any = None) -> tuple[Any, Any]:
        docs, scores = np.empty(best or CORPUS, np.uint32), np.empty(best or CORPUS, np.float32)
        terms = [self.terms[word] for word in words]
        weights = np.array([self.weights[word] for word in words], np.float32)
        count = search(terms, weights, self.norms, allowed, every, best, -1.0, docs, scores)
        return docs[:count], scores[:count]


@pytest.mark.parametrize("bounds", ["none", "impacts", "exact"])
@pytest.mark.parametrize("layout", FORMATS, ids=str)
def test_search(layout: BlockFormat, bounds: str) -> None:
    """The best documents and all of them have the scores of plain sums, whatever the bounds are made from."""
    rng = np.random.default_rng(3)
    corpora = Corpora(4, layout, bounds)
    for _ in range(50):
        words = rng.choice(len(COUNTS), rng.integers(1, 6), replace=False).tolist()
        every = bool(rng.integers(2))
        allowed = rng.random(CORPUS) < rng.choice([0.02, 0.5, 1.0])
        scores, has = corpora.expected(words, every)
        has &= allowed
        docs, found = corpora.found(words, every, 0, np.packbits(allowed, bitorder="little"))
        assert docs.tolist() == np.flatnonzero(has).tolist()
        assert np.allclose(found, scores[docs], rtol=1e-6)
        best = int(rng.choice([1, 10, 300]))
        order = np.lexsort((docs, -found))[:best]
        top, top_scores = corpora.found(words, every, best, np.packbits(allowed, bitorder="little"))
        assert top.tolist() == docs[order].tolist()
        assert top_scores.tolist() == found[order].tolist()


@pytest.mark.parametrize("layout", FORMATS, ids=str)
def test_rare_and_frequent_words(layout: BlockFormat) -> None:
    """The best documents for words of different frequencies are found, where blocks are longer than windows."""
    rng = np.random.default_rng(7)
    documents = 10 * CORPUS
    lengths = rng.integers(30, 40, documents)
    corpus = Corpus(documents, int(lengths.sum()))
    norms = corpus.norms(lengths)
    counts = np.concatenate([rng.integers(60, 120, 30), rng.integers(1000, 4000, 20), rng.integers(40_000, 90_000, 4)])
    terms, weights = [], corpus.limits(counts)
    for count in counts.tolist():
        numbers = np.flatnonzero(rng.random(documents) < count / documents)[:count]
        frequencies = np.minimum(rng.zipf(3.0, len(numbers)), 9)
        terms.append(opened(numbers, frequencies, layout, documents))
        terms[-1].bound_by_documents(norms)
    docs, scores = np.empty(documents, np.uint32), np.empty(documents, np.float32)
    for _ in range(QUERIES):
        chosen = np.array([rng.integers(0, 30), rng.integers(30, 50), rng.integers(50, 54)])
        rng.shuffle(chosen)
        asked = [terms[number] for number in chosen]
        many = search(asked, weights[chosen], norms, None, False, 0, -1.0, docs, scores)
        order = np.lexsort((docs[:many], -scores[:many]))[:10]
        top, best = np.empty(10, np.uint32), np.empty(10, np.float32)
        assert search(asked, weights[chosen], norms, None, False, 10, -1.0, top, best) == 10
        assert best.tolist() == scores[order].tolist()
        assert top.tolist() == docs[order].tolist()


def test_malformed_impacts_set_no_bound() -> None:
    """Entries that are cut, or have codes that do not exist, do not hide documents."""
    corpora = Corpora(5, FORMATS[0], "none")
    codes = corpora.corpus.norms(decode_lengths(np.arange(256)))
    for data in (b"", b"\x01", b"\x01\x01", b"\x01\x00", b"\x01\x02\x01\xff\x01\xff", b"\xff" * 9, b"\x01\x01\x00\x00"):
        for term in corpora.terms:
            term.bound_by_impacts(data, np.array([0, len(data)]), codes)
            assert term.bound == 1
    docs, _ = corpora.found([2], False, 10)
    assert len(docs) == 10


@pytest.mark.parametrize("kind", [postings.LISTED, postings.PACKED, postings.VARINT])
def test_phrases(kind: int) -> None:
    """Phrases with any slop are found in the documents where a plain search finds them."""
    rng = np.random.default_rng(6)
    texts = [rng.integers(0, 3, rng.integers(0, 12) if doc % 50 else 300) for doc in range(400)]
    places = [[np.flatnonzero(text == word) for text in texts] for word in range(3)]
    terms, found_places = [], []
    for mine in places:
        documents = np.flatnonzero([len(each) > 0 for each in mine])
        frequencies = np.array([len(mine[doc]) for doc in documents])
        terms.append(opened(documents, frequencies, FORMATS[0], len(texts)))
        found_places.append(encoded_positions([mine[doc] for doc in documents], kind))
    weights, norms = np.ones(3, np.float32), np.ones(len(texts), np.float32)
    for _ in range(20):
        order = rng.integers(0, 3, rng.integers(1, 5))
        at = np.cumsum(rng.integers(1, 3, len(order))) - 1
        slop = int(rng.integers(0, 4))
        docs, scores = np.empty(len(texts), np.uint32), np.empty(len(texts), np.float32)
        used = np.unique(order)
        phrase = Phrase(np.searchsorted(used, order).astype(np.int32), at.astype(np.int32), slop)
        some, where = [terms[word] for word in used], [found_places[word] for word in used]
        count = search(some, weights[: len(used)], norms, None, True, 0, -1.0, docs, scores, phrase, where)
        wanted = [doc for doc, text in enumerate(texts) if has_phrase(text, order, at, slop)]
        assert docs[:count].tolist() == wanted


def has_phrase(text: NDArray[np.int64], order: NDArray[np.int64], at: NDArray[np.int64], slop: int) -> bool:
    reached = {place - at[0] for place in np.flatnonzero(text == order[0]).tolist()}
    for word, shift in zip(order[1:], at[1:], strict=True):
        later = {place - shift for place in np.flatnonzero(text == word).tolist()}
        reached = {place for place in later if any(place - slop <= before <= place for before in reached)}
    return bool(reached)


def encoded_positions(places: list[NDArray[np.int64]], kind: int) -> Positions:
    if kind == postings.LISTED:
        parts: list[bytes] = []
        owners = [0]
        for mine in places:
            parts.append(len(mine).to_bytes(4, "little"))
            for start in range(0, len(mine), 128):
                part = mine[start : start + 128].astype(np.uint32)
                if len(part) < 128:
                    parts.append(part.tobytes())
                    continue
                steps = np.diff(part.astype(np.int64), prepend=int(part[0]))
                packed = encode_steps(steps, np.array([128]), packed=True).data.tobytes()
                parts.append(part[:1].tobytes() + packed)
            owners.append(len(parts))
        starts = np.cumsum([0, *map(len, parts)])
        return Positions(b"".join(parts), starts, np.array(owners), kind)
    steps = np.concatenate([np.diff(mine, prepend=0) for mine in places])
    counts = np.array([sum(map(len, places[start : start + 128])) for start in range(0, len(places), 128)])
    blocks = encode_steps(steps, counts, packed=kind == postings.PACKED)
    return Positions(blocks.data, blocks.starts, None, kind)
