from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import substrings, suffixes, wavelet

WORDS = 300
DOCUMENT = 27
RATE = 32


def text() -> np.ndarray:
    """Return a text of documents of a few words."""
    words = [bytes(rng().permutation(26)[: 3 + k % 8].astype(np.uint8) + 97) for k in range(WORDS)]
    joined = b" ".join(words[k] for k in rng().integers(0, WORDS, VALUES // 5))
    found = np.frombuffer(joined[: VALUES - 1] + b"\0", np.uint8).copy()
    found[DOCUMENT::DOCUMENT] = 255
    found[-2:] = 255, 0
    return found


def ordered(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order, found = np.empty(len(data), np.int32), np.empty(len(data), np.uint8)
    suffixes.suffix_array(data, order)
    suffixes.transform(data, order, found)
    return order, found


def tree_of(data: np.ndarray) -> tuple[wavelet.Tree, np.ndarray, np.ndarray]:
    counts = np.empty(256, np.int64)
    wavelet.count_symbols(data, counts)
    tree = wavelet.Tree.of_counts(counts)
    sizes = np.empty(tree.num_nodes, np.int64)
    tree.sizes(counts, sizes)
    return tree, counts, sizes


def join_documents() -> Case:
    data, offsets = rng().integers(0, 256, VALUES, np.uint8), np.arange(0, VALUES, DOCUMENT)
    out = np.empty(VALUES + len(offsets), np.uint8)
    return Case(lambda: suffixes.join_documents(data, offsets, True, 254, 32, out), VALUES)


def suffix_array() -> Case:
    data = text()
    out = np.empty(len(data), np.int32)
    return Case(lambda: suffixes.suffix_array(data, out), len(data))


def transform() -> Case:
    data = text()
    order, out = ordered(data)
    return Case(lambda: suffixes.transform(data, order, out), len(data))


def fill() -> Case:
    data = ordered(text())[1]
    tree, counts, sizes = tree_of(data)
    words = np.empty(int(((sizes + 63) // 64).sum()), np.uint64)
    return Case(lambda: tree.fill(data, counts, words), len(data))


def count_symbols() -> Case:
    data, out = text(), np.empty(256, np.int64)
    return Case(lambda: wavelet.count_symbols(data, out), len(data))


def block_ranks() -> Case:
    words = rng().integers(0, 1 << 64, VALUES // 8, np.uint64)
    out = np.empty(-(-len(words) // 4096), np.uint64)
    return Case(lambda: wavelet.block_ranks(words, 4096, out), words.nbytes)


def parts() -> tuple[tuple[Any, ...], np.ndarray]:
    data = text()
    order, transformed = ordered(data)
    tree, counts, sizes = tree_of(transformed)
    words = np.empty(int(((sizes + 63) // 64).sum()), np.uint64)
    tree.fill(transformed, counts, words)
    starts = np.append(0, np.flatnonzero(data == 255)[:-1] + 1).astype(np.uint64)
    known = order[::RATE].astype(np.uint64)
    return (len(data), RATE, tree.to_bytes(), sizes, words, known, starts, starts), data


def open_partition() -> Case:
    found, data = parts()
    return Case(lambda: substrings.Partition(*found), len(data))


def find(count: int) -> Case:
    found, data = parts()
    partition, pattern = substrings.Partition(*found), bytes(data[:count]).replace(b"\xff", b" ")
    return Case(lambda: partition.find(pattern), count)


def locate(pattern: bytes) -> Case:
    found, data = parts()
    partition, out = substrings.Partition(*found), np.empty(len(data), np.uint64)
    rows = partition.find(pattern)
    return Case(lambda: partition.locate(*rows, out), rows[1] - rows[0])


def whole_text() -> Case:
    found, data = parts()
    partition, out = substrings.Partition(*found), np.empty(len(data), np.uint8)
    return Case(lambda: partition.text(out), len(data))


def decode_hex() -> Case:
    digits = bytes(rng().integers(0, 256, VALUES, np.uint8)).hex().encode()
    out = np.empty(VALUES, np.uint8)
    return Case(lambda: substrings.decode_hex(digits, out), VALUES)


CASES: dict[str, Callable[[], Case]] = {
    "suffixes.join_documents": join_documents,
    "suffixes.suffix_array": suffix_array,
    "suffixes.transform": transform,
    "wavelet.Tree.fill": fill,
    "wavelet.count_symbols": count_symbols,
    "wavelet.block_ranks": block_ranks,
    "substrings.Partition": open_partition,
    "substrings.Partition.locate": lambda: locate(b"ab"),
    "substrings.Partition.find": lambda: find(2000),
    "substrings.Partition.text": whole_text,
    "substrings.decode_hex": decode_hex,
}
