from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import substrings, suffixes, wavelet


def text_of(c: Chaos) -> np.ndarray:
    """Return a text of some documents."""
    size, symbols = c.random.randint(0, 300), c.random.choice([2, 4, 250])
    text = c.rng.integers(1, symbols, size, np.uint8)
    text[c.rng.random(size) < 0.1] = 255
    return np.concatenate([text, np.array([255, 0], np.uint8)])


def ordered(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the suffixes in order, and the transform."""
    order, found = np.empty(len(text), np.int32), np.empty(len(text), np.uint8)
    suffixes.suffix_array(text, order)
    suffixes.transform(text, order, found)
    return order, found


def join_documents(c: Chaos) -> object:
    wide, count = c.flag(), c.random.randint(0, 30)
    ends = np.cumsum(np.append(0, c.rng.integers(0, 40, count)))
    total = int(ends[-1])
    if c.flag(0.1):
        ends[c.random.randrange(len(ends))] = c.random.choice([-1, total + 1, 2**31 - 1, -(2**31)])
    offsets = c.damaged(ends.astype(np.int64 if wide else np.int32).tobytes(), 0.05)
    zero, top = c.random.choice([(254, 32), (32, 32), (0, 255)])
    return suffixes.join_documents(c.buffer(total), offsets, wide, zero, top, c.out(total + count + 1))


def suffix_array(c: Chaos) -> object:
    text = text_of(c) if c.flag(0.8) else c.buffer()
    size = len(text) if isinstance(text, np.ndarray | bytes) else 9
    return suffixes.suffix_array(text, np.empty(max(size + c.random.choice([0] * 9 + [1, -1]), 0), np.int32))


def transform(c: Chaos) -> object:
    order = c.rng.integers(-(2**31), 2**31, c.random.randint(0, 60)).astype(np.int32)
    return suffixes.transform(c.buffer(len(order)), order, c.out(len(order)))


def counts_of(c: Chaos) -> np.ndarray:
    counts = c.rng.integers(0, c.random.choice([1, 2, 1000]), 256 if c.flag(0.95) else 255)
    if c.flag(0.1):
        counts[c.random.randrange(255)] = c.random.choice([-1, 2**54, 2**54 + 1, 2**63 - 1])
    return counts


def of_counts(c: Chaos) -> object:
    return wavelet.Tree.of_counts(counts_of(c)).codes()


def parse(c: Chaos) -> object:
    made = wavelet.Tree.of_counts(np.maximum(c.rng.integers(-5, 9, 256), 0) + (np.arange(256) < 2))
    return wavelet.Tree.parse(c.damaged(made.to_bytes(), 0.5)).codes()


def fill(c: Chaos) -> object:
    text, counts = text_of(c), np.empty(256, np.int64)
    wavelet.count_symbols(text, counts)
    tree = wavelet.Tree.of_counts(counts)
    sizes = np.empty(tree.num_nodes + (not c.flag(0.95)), np.int64)
    tree.sizes(counts if c.flag(0.9) else counts_of(c), sizes)
    if c.flag(0.2):
        text[c.random.randrange(len(text))] = c.random.randint(0, 255)
    return tree.fill(text, counts, c.out(int(((np.abs(sizes) + 63) // 64 * 8).clip(0, 9000).sum())))


def block_ranks(c: Chaos) -> object:
    words, block = c.random.randint(0, 50), c.random.choice([1, 7, 64, c.number()])
    blocks = -(-words // block) if isinstance(block, int) and block > 0 else 1
    return wavelet.block_ranks(c.buffer(8 * words), block, np.empty(blocks, np.uint64))


def search(c: Chaos) -> object:
    text, counts, rate = text_of(c), np.empty(256, np.int64), c.random.choice([1, 3, 32])
    order, transformed = ordered(text)
    wavelet.count_symbols(text, counts)
    tree = wavelet.Tree.of_counts(counts)
    sizes = np.empty(tree.num_nodes, np.int64)
    tree.sizes(counts, sizes)
    words = np.empty(int(((sizes + 63) // 64).sum()), np.uint64)
    tree.fill(transformed, counts, words)
    starts = np.append(0, np.flatnonzero(text == 255)[:-1] + 1).astype(np.uint64)
    owners = np.searchsorted(starts, order[len(order) - counts[255] :].astype(np.uint64), side="right") - 1
    parts = [tree.to_bytes(), sizes, words, order[::rate].astype(np.uint64), starts, starts, owners.astype(np.uint16)]
    shaped = [c.damaged(bytes(part), 0.1) for part in parts]
    size = len(text) if c.flag(0.9) else c.number(300)
    found = substrings.Partition(size, rate if c.flag(0.9) else c.number(), *shaped)
    out = np.empty(found.num_documents - (not c.flag(0.95)), np.uint64)
    rows = found.find(c.buffer(c.random.randint(0, 3))) if c.flag() else (c.number(300), c.number(300))
    found.text(c.out(len(text)))
    return found.locate(*rows, out), found.first_rows(), found.way, found.nbytes


def decode_hex(c: Chaos) -> object:
    count = c.random.randint(0, 40)
    digits = bytes(c.rng.integers(0, 256, count, np.uint8)).hex().encode()
    return substrings.decode_hex(c.damaged(digits, 0.2), c.out(count))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "suffixes.join_documents": join_documents,
    "suffixes.suffix_array": suffix_array,
    "suffixes.transform": transform,
    "wavelet.Tree.of_counts": of_counts,
    "wavelet.Tree.parse": parse,
    "wavelet.Tree.fill": fill,
    "wavelet.block_ranks": block_ranks,
    "substrings.Partition": search,
    "substrings.decode_hex": decode_hex,
}
