"""Fixed-width values in chunks: flat, bit packed, run-length encoded, split into byte streams, or a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate
from lance_dataset.file.v2_1.compressive import ByteStreamSplit, Flat, InlineBitpacking, Rle
from lance_dataset.file.v2_1.write.encoded import Bytes, EncodedChunks
from lance_dataset.file.v2_1.write.leaf_values import Words
from lance_dataset.file.v2_1.write.request import Candidate, Request
from lancecodec import bitpacking, byte_stream_split, flat, rle, statistics
from lancecodec.statistics import FixedStatistics

__all__ = ["cheapest", "encode_bits", "flat_chunks", "flat_ends", "raw_chunks", "word_candidates"]

_WORD_BITS = (8, 16, 32, 64)
_PACKED_VALUES = bitpacking.BLOCK_VALUES
_RLE_VALUES = 16384
_RLE_BYTES = 8186
#: Below this many bits of entropy per byte position splitting pays: the reference's threshold.
_SPLIT_ENTROPY = 4.0
_SPLIT_BYTES = 4096


def cheapest(candidates: list[Candidate], request: Request) -> EncodedChunks:
    """The smallest of the candidates, the first of equal ones; estimates are checked against what comes out.

    The candidates are in the order of their cost of decoding.
    """
    best: EncodedChunks | None = None
    best_size = 0
    for candidate in sorted(candidates, key=lambda one: one.size):
        if best is not None and best_size <= candidate.size:
            break
        encoded = candidate.encode()
        size = candidate.size if candidate.exact else request.size(encoded)
        if best is None or size < best_size:
            best, best_size = encoded, size
    if best is None:
        raise ValueError("no way to encode the values of a page was offered")
    return best


# -- flat --------------------------------------------------------------------------------------------------------


def flat_ends(count: int, per_chunk: int, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Values of each chunk, and the byte where it ends, of values of `width` bytes."""
    chunks = -(-count // per_chunk)
    ends = np.arange(width * per_chunk, width * per_chunk * (chunks + 1), width * per_chunk, dtype=np.int64)
    counts = np.full(chunks, per_chunk, np.int64)
    ends[-1:] = count * width
    counts[-1:] = count - (chunks - 1) * per_chunk
    return counts, ends


def flat_chunks(buffer: Bytes, bits: int, count: int, per_chunk: int) -> EncodedChunks:
    """Values of whole bytes as they are."""
    counts, ends = flat_ends(count, per_chunk, bits // 8)
    return EncodedChunks(Flat(bits), counts, [(buffer, ends)], per_chunk, None, "flat")


def encode_bits(values: pa.Buffer, bit: int, count: int, request: Request) -> EncodedChunks:
    """Booleans, from bit `bit` of a buffer on."""
    per_chunk = request.flat_values(1)
    counts, ends = flat_ends(count, per_chunk, 1)
    out = allocate(sum((size + 7) // 8 for size in counts.tolist()))
    flat.encode(values, bit, count, 1, per_chunk, out, ends)
    return EncodedChunks(Flat(1), counts, [(out, ends)], per_chunk, None, "a bit each")


# -- words -------------------------------------------------------------------------------------------------------


def word_candidates(words: Words, request: Request) -> tuple[list[Candidate], int]:
    """Flat, and for words of 8 to 64 bits packing and runs where they are smaller; cheapest to decode first.

    Also the least number of entries that run-length encoding can have; 0 where it is not known.
    """
    per_chunk = request.flat_values(words.bits)
    if per_chunk == 0:
        return [], 0
    plain = Candidate(
        request.even_size(words.count, per_chunk, [words.bits]),
        lambda: flat_chunks(words.buffer, words.bits, words.count, per_chunk),
        exact=True,
    )
    if words.bits not in _WORD_BITS or request.options.compression == "none" or words.count < 2:
        return [plain], 0
    measured = _measure(words)
    candidates = [plain]
    runs, rle_words, found = min(((found.rle_entries or 0, one, found) for one, found in measured), key=_first)
    packed, packed_words = min(((found.inline_size or 0, one) for one, found in measured), key=_first)
    if packed < plain.size:
        _add_smaller(candidates, _packed_candidate(packed_words, packed, request))
    if runs * (words.width + 1) < plain.size:
        _add_smaller(candidates, _run_candidate(rle_words, found, request))
    return candidates, runs


def _first(one: tuple[Any, ...]) -> int:
    return int(one[0])


def _add_smaller(candidates: list[Candidate], candidate: Candidate | None) -> None:
    """Add a candidate that is smaller than the first."""
    if candidate is not None and candidate.size < candidates[0].size:
        candidates.append(candidate)


def _measure(words: Words) -> list[tuple[Words, FixedStatistics]]:
    """The words and what is known of them, with nulls filled in the ways that may pay."""
    variants = [words]
    if words.validity is not None:
        variants.append(words.filled_forward())
    measured = [(one, statistics.fixed(one.buffer, one.width, run_cut=_RLE_VALUES)) for one in variants]
    if len(measured) == 2 and measured[0][1].bit_width > measured[1][1].bit_width:  # nulls hide wide values
        zeros = words.filled_with_zeros()
        measured[0] = (zeros, statistics.fixed(zeros.buffer, zeros.width, run_cut=_RLE_VALUES))
    return measured


def _packed_candidate(words: Words, size: int, request: Request) -> Candidate | None:
    if request.max_values < _PACKED_VALUES:
        return None
    chunks = -(-words.count // _PACKED_VALUES)
    packed = size - chunks * words.width
    last = words.count - (chunks - 1) * _PACKED_VALUES
    levels = (chunks - 1) * request.level_bytes(_PACKED_VALUES) + request.level_bytes(last)
    return Candidate(chunks * (request.header(1) + 8) + packed + levels, lambda: _pack(words), exact=True)


def _pack(words: Words) -> EncodedChunks:
    counts, ends = flat_ends(words.count, _PACKED_VALUES, 1)
    out = allocate(bitpacking.inline_bound(words.count, words.bits))
    size = bitpacking.inline_encode(words.buffer, words.bits, out, ends)
    return EncodedChunks(InlineBitpacking(words.bits), counts, [(out.slice(0, size), ends)], 0, None, "bit packing")


def _run_candidate(words: Words, found: FixedStatistics, request: Request) -> Candidate | None:
    threshold = request.options.rle_threshold
    if threshold is not None and found.run_count >= threshold * words.count:
        return None
    entries = found.rle_entries or 0
    chunks = max(1, entries * words.width // _RLE_BYTES, words.count // _RLE_VALUES)
    size = entries * (words.width + 1) + chunks * request.header(2)
    size += request.level_bytes(words.count) if chunks == 1 else words.count // 8 * request.nullable
    return Candidate(size, lambda: _encode_runs(words, entries, found.run_count, request))


def _encode_runs(words: Words, entries: int, runs: int, request: Request) -> EncodedChunks:
    limits = (8, max(64, min(_RLE_VALUES, request.max_values)), _RLE_BYTES)
    if limits[1] != _RLE_VALUES:
        _, entries = rle.count(words.buffer, words.bits, limits[1])
    value_bytes, length_bytes, chunks = rle.encode_bound(words.count, words.bits, entries, *limits)
    values, lengths = allocate(value_bytes), allocate(length_bytes)
    value_ends, length_ends, counts = (np.empty(chunks, np.int64) for _ in range(3))
    used = rle.encode(words.buffer, words.bits, values, lengths, value_ends, length_ends, counts, *limits)
    buffers = [
        (values.slice(0, int(value_ends[used - 1])), value_ends[:used]),
        (lengths.slice(0, int(length_ends[used - 1])), length_ends[:used]),
    ]
    return EncodedChunks(Rle(Flat(words.bits), Flat(8)), counts[:used], buffers, 0, None, f"{runs:,} runs")


# -- what general compression likes ------------------------------------------------------------------------------


def raw_chunks(words: Words, request: Request) -> list[EncodedChunks]:
    """The bytes of the values in large chunks, and byte-stream split where the reference uses it, for compression."""
    per_chunk = request.flat_values(words.bits, roomy=True)
    if per_chunk == 0:
        return []
    plain = flat_chunks(words.buffer, words.bits, words.count, per_chunk)
    if not _splits(words, request):
        return [plain]
    # Which size of chunk compresses better differs from page to page.
    return [plain, _split(words, min(_SPLIT_BYTES // words.width, per_chunk)), _split(words, per_chunk)]


def _splits(words: Words, request: Request) -> bool:
    mode = request.options.byte_stream_split
    if words.bits not in (32, 64) or mode == "off":
        return False
    return mode == "on" or statistics.byte_entropy(words.buffer, words.width) < _SPLIT_ENTROPY


def _split(words: Words, per_chunk: int) -> EncodedChunks:
    counts, ends = flat_ends(words.count, per_chunk, words.width)
    out = allocate(words.count * words.width)
    byte_stream_split.encode(words.buffer, words.bits, per_chunk, out, ends)
    return EncodedChunks(ByteStreamSplit(words.bits), counts, [(out, ends)], 0, None, "byte streams")
