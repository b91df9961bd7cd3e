"""Values of a leaf in the form that kernels use: words of some bits, or bytes with offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.file.buffers import aligned, allocate
from lance_dataset.file.kinds import is_wide
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.late_dataclass import dataclass
from lancecodec import bitmap, statistics, variable
from lancecodec.statistics import FixedStatistics

__all__ = ["RUN_CUT", "Bytes", "MeasuredWords", "Strings", "Words", "fixed_bytes", "measure", "strings_of", "words_of"]

#: Bytes as the kernels accept and return them.
Bytes: TypeAlias = "pa.Buffer | bytes | memoryview"
#: Maximum values of a chunk of runs, at which runs are cut.
RUN_CUT = 16384

_EMPTY = pa.py_buffer(b"")


@dataclass(frozen=True)
class Words:
    """Fixed-width values of whole bytes.

    Attributes
    ----------
    buffer
        Buffer with exactly the values.
    bits, count
        Width of a value in bits, and number of values.
    validity
        Bitmap that starts at bit 0; None if all are valid.
    """

    buffer: pa.Buffer
    bits: int
    count: int
    validity: pa.Buffer | None

    @property
    def width(self) -> int:
        """Bytes of a value."""
        return self.bits // 8

    @property
    def mean_bytes(self) -> int:
        """Average bytes of a value, at least 1."""
        return max(1, self.width)

    def filled_forward(self) -> Words:
        """Return the words with nulls replaced by the preceding value, the first ones by the next value."""
        array = pc.fill_null_forward(self._as_integers())
        if array.null_count:
            array = pc.fill_null_backward(array)
        return self._replaced(array)

    def filled_with_zeros(self) -> Words:
        """Return the words with nulls replaced by zeros."""
        return self._replaced(pc.fill_null(self._as_integers(), 0))

    def _as_integers(self) -> pa.Array:
        integers = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[self.bits]
        return pa.Array.from_buffers(integers, self.count, [self.validity, aligned(self.buffer, self.width)])

    def _replaced(self, array: pa.Array) -> Words:
        begin = array.offset * self.width
        return replace(self, buffer=array.buffers()[1].slice(begin, self.count * self.width), validity=None)


class MeasuredWords(NamedTuple):
    """Words and statistics about them, with nulls filled in the ways that may pay.

    Attributes
    ----------
    packed, packed_size
        The words that are smallest when bit packed, and their packed bytes.
    runs, found
        The words that have the fewest runs, and their statistics.
    """

    packed: Words
    packed_size: int
    runs: Words
    found: FixedStatistics


def measure(words: Words) -> MeasuredWords:
    """Measure words of 8 to 64 bits."""
    found = statistics.fixed(words.buffer, words.width, run_cut=RUN_CUT)
    if words.validity is None:
        return MeasuredWords(words, found.inline_size or 0, words, found)
    filled = words.filled_forward()
    other = statistics.fixed(filled.buffer, filled.width, run_cut=RUN_CUT)
    if found.bit_width > other.bit_width:  # there are wide values under nulls
        words = words.filled_with_zeros()
        found = statistics.fixed(words.buffer, words.width, run_cut=RUN_CUT)
    variants = ((words, found), (filled, other))
    packed, measured = min(variants, key=lambda one: one[1].inline_size or 0)
    return MeasuredWords(packed, measured.inline_size or 0, *min(variants, key=lambda one: one[1].rle_entries or 0))


@dataclass(frozen=True)
class Strings:
    """Values of variable length, with empty nulls.

    Attributes
    ----------
    offsets
        Exactly ``count + 1`` offsets; the first may be any number. 64 bits if `wide`, else 32.
    data
        The bytes to which the offsets point.
    count, validity
        As in `Words`.
    total, longest
        Total bytes of all values, and bytes of the longest value.
    """

    offsets: pa.Buffer
    data: Bytes
    wide: bool
    count: int
    validity: pa.Buffer | None
    total: int
    longest: int

    @property
    def offset_width(self) -> int:
        """Bytes of an offset."""
        return 8 if self.wide else 4

    @property
    def mean_bytes(self) -> int:
        """Average bytes of a value, at least 1."""
        return self.total // self.count + 1


def fixed_bytes(values: pa.Array, bits: int) -> pa.Buffer:
    """Return the bytes of an array of fixed-width values of whole bytes."""
    buffer = values.buffers()[1]
    if buffer is None:
        return _EMPTY
    return buffer.slice(values.offset * bits // 8, len(values) * bits // 8)


def words_of(values: pa.Array, validity: pa.Buffer | None) -> Words:
    """Return the words of fixed-width values, which must not be bits."""
    bits = value_bits(values.type)
    return Words(fixed_bytes(values, bits), bits, len(values), validity)


def strings_of(values: pa.Array, validity: pa.Buffer | None) -> Strings:
    """Return the strings or binaries of an array, without the bytes under nulls."""
    wide, count = is_wide(values.type), len(values)
    width = 8 if wide else 4
    _, offsets, data = values.buffers()
    if offsets is None or offsets.size == 0:
        offsets = pa.py_buffer(bytes(width))
    offsets = aligned(offsets.slice(values.offset * width, (count + 1) * width), width)
    data = data if data is not None else _EMPTY
    total, longest = variable.measure(offsets, wide, count)
    if validity is not None:
        valid = statistics.variable(data, offsets, wide, validity)
        if valid.total_length != total:
            offsets, data = _without_nulls(offsets, data, wide, count, validity)
        total, longest = valid.total_length, valid.max_length
    return Strings(offsets, data, wide, count, validity, total, longest)


def _without_nulls(
    offsets: pa.Buffer, data: pa.Buffer, wide: bool, count: int, validity: pa.Buffer
) -> tuple[pa.Buffer, pa.Buffer]:
    """Return the offsets and bytes of the values, with empty nulls."""
    mask = np.empty(count, np.uint8)
    bitmap.unpack(validity, 0, count, mask.data)
    kind = np.int64 if wide else np.int32
    compact = np.zeros(count + 1, kind)
    np.cumsum(np.diff(np.frombuffer(offsets, kind)) * mask, out=compact[1:])
    kept: NDArray[np.int64] = np.flatnonzero(mask).astype(np.int64)
    out = allocate(int(compact[-1]) + 64)
    size = variable.select_bytes(offsets, wide, data, count, kept, out)
    return pa.py_buffer(compact), out.slice(0, size)
