"""Pages of indices into a dictionary that is built from the values or given by an Arrow dictionary array."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import allocate, bitmap_at_zero
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.bitpacking import packed_entries
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.general import compressed_entries, smallest_compressed
from lance_dataset.file.structural.encodings.registry import compressible_chunks, word_candidates
from lance_dataset.file.structural.encodings.request import (
    Candidate,
    EncodedChunks,
    EncodedDictionary,
    Request,
    cheapest,
)
from lance_dataset.file.structural.encodings.values import Bytes, Strings, Words, fixed_bytes, strings_of
from lance_dataset.file.structural.encodings.variable import encode_entries
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.schema import Field
from lancecodec import bitmap, bitpacking, dictionary, gather

__all__ = ["Rival", "dictionary_of_strings", "dictionary_of_words", "encode_dictionary_array", "sampled_rows"]

#: Minimum values, and maximum entries, of a dictionary. The reference has the same limits.
_LEAST_VALUES = 100
_MOST_ENTRIES = 100_000
#: Minimum bytes of the header and bit width of a chunk.
_CHUNK_OVERHEAD = 16
_SAMPLE = 4096
_SAMPLED_PART = 64
_SAMPLE_BYTES = 1 << 20
#: Expected repeats in a sample if a dictionary would just not pay; enough to decide. Large pages sample more.
_EXPECTED_REPEATS = 12
_GATHER_SLACK = 64
#: Numbers the distinct values: (codes, code width, positions of the first ones) -> (entries, their bytes) or None.
_Build = Callable[[pa.Buffer, int, "NDArray[np.int64]"], "tuple[int, int] | None"]
_Values = TypeVar("_Values", Words, Strings)


@dataclass(frozen=True)
class Rival:
    """Size of the best encoding so far, which a dictionary must beat.

    Attributes
    ----------
    size
        Number of bytes.
    runs
        Minimum number of entries of run-length encoding; 0 if unknown.
    """

    size: int
    runs: int = 0

    def beats(self, count: int, entries: int) -> bool:
        """Return whether a dictionary of at least `entries` entries, even well encoded, can hardly be smaller."""
        bits = (entries - 1).bit_length()
        width = (bits + 7) // 8
        packed = count * bits // 8 + count // bitpacking.BLOCK_VALUES * _CHUNK_OVERHEAD
        return entries * width + min(packed, self.runs * width) >= self.size


def dictionary_of_words(words: Words, rival: Rival, request: Request) -> Candidate | None:
    """Return a dictionary of fixed-width values if it can be smaller than its rival, otherwise None."""
    if words.count < _LEAST_VALUES or words.width > dictionary.MAX_WIDTH:
        return None
    most = _most_entries(words.count, words.width, rival.size, request)
    distinct = _least_distinct(words, most, _sample_words)
    if distinct > most or rival.beats(words.count, distinct):
        return None

    def build(codes: pa.Buffer, code_width: int, positions: NDArray[np.int64]) -> tuple[int, int] | None:
        return dictionary.build_fixed(words.buffer, words.width, codes, code_width, positions, words.validity)

    built = _number(build, words.count, most, distinct)
    if built is None:
        return None
    codes, positions = built
    entries = allocate(len(positions) * words.width)
    gather.fixed(words.buffer, words.width, positions.data, 8, entries)
    raw = words.count * words.width
    return _candidate(
        Words(codes, 8 * codes.size // words.count, words.count, words.validity),
        # releases that read 2.1 but not 2.2 cannot read packed entries
        fixed_entries(entries, words.bits, len(positions), request, packed=request.large),
        raw,
        request,
    )


def dictionary_of_strings(strings: Strings, rival: Rival, request: Request) -> Candidate | None:
    """Return a dictionary of strings or binaries if it can be smaller than its rival, otherwise None."""
    if strings.count < _LEAST_VALUES:
        return None
    most = _most_entries(strings.count, strings.offset_width, rival.size, request)
    place = (strings.data, strings.offsets, strings.wide)
    distinct = _least_distinct(strings, most, _sample_strings)
    if distinct > most:
        return None

    def build(codes: pa.Buffer, code_width: int, positions: NDArray[np.int64]) -> tuple[int, int] | None:
        limit = 4 * rival.size if request.large else rival.size  # entries will be compressed
        return dictionary.build_variable(*place, codes, code_width, positions, strings.validity, 0, limit)

    built = _number(build, strings.count, most, distinct)
    if built is None:
        return None
    codes, positions = built
    offsets = allocate((len(positions) + 1) * strings.offset_width)
    total = gather.binary_offsets(*place, positions.data, 8, strings.wide, offsets)
    data = allocate(total + _GATHER_SLACK)
    gather.binary(*place, positions.data, 8, data)
    raw = strings.total + (strings.count + 1) * strings.offset_width
    return _candidate(
        Words(codes, 8 * codes.size // strings.count, strings.count, strings.validity),
        string_entries(offsets, data.slice(0, total), strings.wide, len(positions), request),
        raw,
        request,
    )


def encode_indices(indices: Words, entries: EncodedDictionary, request: Request) -> EncodedChunks:
    """Encode indices of a dictionary in chunks, compressed if that was requested."""
    request = replace(request, alone=False)
    encoded = cheapest(word_candidates(indices, request)[0], request)
    if request.options.compression in ("lz4", "zstd"):
        encoded = smallest_compressed([encoded, *compressible_chunks(indices, request)], request)
    return replace(encoded, dictionary=entries, reason=f"dictionary of {entries.size:,} entries, {encoded.reason}")


def _candidate(indices: Words, entries: EncodedDictionary, raw: int, request: Request) -> Candidate | None:
    encoded = encode_indices(indices, entries, request)
    size = request.size(encoded)
    ratio = request.options.dictionary_size_ratio
    if ratio is not None and size > ratio * raw:
        return None
    return Candidate(size, lambda: encoded)


def _most_entries(count: int, entry_bytes: int, alternative: int, request: Request) -> int:
    """Return the number of entries above which a dictionary does not pay or is not wanted."""
    limit = min(count // (request.options.dictionary_divisor or 2), _MOST_ENTRIES)
    if request.large and request.options.dictionary_compression != "none":
        return limit  # the size of compressed entries is unknown
    return max(0, min(limit, alternative // entry_bytes))


# -- number of distinct values -----------------------------------------------------------------------------------


def _least_distinct(values: _Values, most: int, sample: Callable[[_Values, NDArray[np.int64]], int]) -> int:
    """Estimate a lower bound of the number of distinct valid values from a random sample; it holds almost certainly.

    A sample of s out of d equally frequent values has about s**2 / 2d - s**3 / 6d**2 repeats (the birthday problem). It
    has more repeats if some values are more frequent than others.
    """
    rows, valid = _sample_rows(values.count, values.mean_bytes, most), values.count
    if values.validity is not None:
        valid = bitmap.count(values.validity, 0, valid)
        octets = np.frombuffer(values.validity, np.uint8)
        rows = rows[(octets[rows >> 3] >> (rows & 7).astype(np.uint8)) & 1 != 0]
    return _estimate(len(rows), sample(values, rows) if len(rows) else 0, values.count, valid)


def _estimate(sampled: int, distinct: int, count: int, valid: int) -> int:
    """Return the lower bound that a sample shows of the distinct ones among some values, of which `valid` are valid."""
    repeats = sampled - distinct
    repeats += 3 * int((repeats + 1) ** 0.5) + 1  # three standard deviations
    if sampled == count or 4 * repeats > sampled:
        return distinct
    return min(valid, max(distinct, sampled**2 // (2 * repeats) - sampled // 3))


@lru_cache(maxsize=64)
def sampled_rows(count: int, width: int) -> tuple[NDArray[np.int64], int]:
    """Return rows from which to tell that a dictionary does not pay, where nothing else is asked of the page.

    Parameters
    ----------
    count
        Number of values, all valid.
    width
        Bytes of a value, 1 to 8.

    Returns
    -------
    rows
        Row numbers; none if a dictionary never pays.
    most
        Number of distinct values at these rows up to which a dictionary may pay.
    """
    if count < _LEAST_VALUES or width == 1:
        return np.empty(0, np.int64), 0
    limit = min(count // 2, _MOST_ENTRIES)
    rows = _sample_rows(count, width, limit)
    distinct = range(len(rows) + 1)
    return rows, bisect_right(distinct, limit, key=lambda few: _estimate(len(rows), few, count, count)) - 1


def _sample_rows(count: int, mean_bytes: int, most: int) -> NDArray[np.int64]:
    """Return the rows of a sample large enough to tell whether there are more than `most` distinct values."""
    size = min(_SAMPLE, max(int((2 * _EXPECTED_REPEATS * most) ** 0.5), count // _SAMPLED_PART) + 1)
    return _random_rows(count, min(size, 1 + _SAMPLE_BYTES // mean_bytes))


@lru_cache(maxsize=8)
def _random_rows(count: int, size: int) -> NDArray[np.int64]:
    """Return random row numbers below `count`; always the same ones, so that encoding is deterministic."""
    if size >= count:
        return np.arange(count)
    rows: NDArray[np.int64] = np.random.default_rng(count).choice(count, size, replace=False, shuffle=False)
    return np.sort(rows)


def _sample_words(words: Words, rows: NDArray[np.int64]) -> int:
    chosen = bytearray(len(rows) * words.width)
    gather.fixed(words.buffer, words.width, rows.data, 8, chosen)
    return dictionary.sample_fixed(chosen, words.width, blocks=1, size=len(rows))[1]


def _sample_strings(strings: Strings, rows: NDArray[np.int64]) -> int:
    place = (strings.data, strings.offsets, strings.wide, rows.data, 8)
    offsets = bytearray((len(rows) + 1) * strings.offset_width)
    chosen = bytearray(gather.binary_offsets(*place, strings.wide, offsets) + _GATHER_SLACK)
    gather.binary(*place, chosen)
    return dictionary.sample_variable(chosen, offsets, strings.wide, blocks=1, size=len(rows))[1]


def _number(build: _Build, count: int, most: int, distinct: int) -> tuple[pa.Buffer, NDArray[np.int64]] | None:
    """Return codes of the smallest width, and the position of the first value of each entry."""
    for code_width in (1, 2, 4):
        room = 256**code_width
        if code_width < 4 and distinct > room:
            continue
        codes = allocate(count * code_width)
        positions = np.empty(min(room, most), np.int64)
        built = build(codes, code_width, positions)
        if built is not None:
            return (codes, positions[: built[0]]) if built[0] else None
        if room >= most:
            return None
    return None


# -- entries -----------------------------------------------------------------------------------------------------


def fixed_entries(values: Bytes, bits: int, count: int, request: Request, packed: bool) -> EncodedDictionary:
    """Encode fixed-width entries in the smallest way: plain, packed if `packed`, or compressed (2.2)."""
    choices: list[tuple[Encoding, Bytes]] = [(Flat(bits), values)]
    if bits in (8, 16, 32, 64) and packed:
        choices.append(packed_entries(values, bits, count))
    choices.extend(compressed_entries(Flat(bits), values, request))
    return _smallest(choices, count)


def string_entries(offsets: Bytes, data: Bytes, wide: bool, count: int, request: Request) -> EncodedDictionary:
    """Encode strings or binaries in the smallest way: plain or compressed (2.2)."""
    plain = encode_entries(offsets, data, wide, count)
    return _smallest([plain, *compressed_entries(*plain, request)], count)


def _smallest(choices: list[tuple[Encoding, Bytes]], count: int) -> EncodedDictionary:
    encoding, buffer = min(choices, key=lambda one: memoryview(one[1]).nbytes)
    return EncodedDictionary(encoding, count, buffer)


# -- Arrow dictionary arrays, without entries that are not used --------------------------------------------------


def encode_dictionary_array(
    values: pa.DictionaryArray, validity: pa.Buffer | None, field: Field, request: Request
) -> EncodedChunks:
    """Encode a page of a dictionary array without null entries.

    Raises
    ------
    UnsupportedError
        Page dictionaries do not hold the type of the entries.
    """
    kind = values.type
    if not is_binary_like(kind.value_type) and value_bits(kind.value_type) == 0:
        raise UnsupportedError(
            f"column {field.name!r}: dictionaries of {kind.value_type} cannot be stored; decode the dictionary first"
        )
    bits = kind.index_type.bit_width
    indices = Words(fixed_bytes(values, bits), bits, len(values), validity)
    entries = values.dictionary
    used = _used(indices, len(entries))
    if len(used) < len(entries):
        indices, entries = _compact(indices, entries, used)
    elif validity is not None:
        indices = Words(_in_range(indices, len(entries)), bits, len(values), validity)
    return encode_indices(indices, _encode_entries(entries, request), request)


def _integers(indices: Words) -> NDArray[np.unsignedinteger]:
    return np.frombuffer(indices.buffer, f"<u{indices.width}", indices.count)


def _used(indices: Words, entries: int) -> NDArray[np.int64]:
    """Return the positions of the entries to which a valid index points, at least one."""
    found = np.zeros(entries, np.bool_)
    found[_integers(indices) if indices.validity is None else _integers(indices)[_mask(indices)]] = True
    used = np.flatnonzero(found)
    return used if len(used) else np.zeros(min(1, entries), np.int64)


def _mask(indices: Words) -> NDArray[np.bool_]:
    mask = np.empty(indices.count, np.bool_)
    bitmap.unpack(indices.validity or b"", 0, indices.count, mask.view(np.uint8).data)
    return mask


def _compact(indices: Words, entries: pa.Array, used: NDArray[np.int64]) -> tuple[Words, pa.Array]:
    """Return the used entries only, and the indices into them."""
    renumber = np.zeros(len(entries), f"<u{indices.width}")
    renumber[used] = np.arange(len(used))
    known = np.frombuffer(_in_range(indices, len(entries)), f"<u{indices.width}", indices.count)
    compacted = Words(pa.py_buffer(renumber[known]), indices.bits, indices.count, indices.validity)
    return compacted, entries.take(pa.array(used))


def _in_range(indices: Words, entries: int) -> pa.Buffer:
    """Return the indices, with a valid index for nulls."""
    if indices.validity is None:
        return indices.buffer
    integers = _integers(indices)
    return pa.py_buffer(np.where(_mask(indices) & (integers < entries), integers, 0).astype(integers.dtype))


def _encode_entries(entries: pa.Array, request: Request) -> EncodedDictionary:
    if is_binary_like(entries.type):
        strings = strings_of(entries, None)
        return string_entries(strings.offsets, strings.data, strings.wide, strings.count, request)
    bits = value_bits(entries.type)
    if bits == 1:
        flags = bitmap_at_zero(entries.buffers()[1], entries.offset, len(entries))
        return fixed_entries(flags.slice(0, (len(entries) + 7) // 8), 1, len(entries), request, packed=True)
    return fixed_entries(fixed_bytes(entries, bits), bits, len(entries), request, packed=True)
