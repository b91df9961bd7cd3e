"""What a writer must know about a page to choose its encoding.

Nulls: their bytes are encoded like any others, so they count for bit widths and runs; they do not count for extremes,
equality, lengths and distinct values. Every `validity` is a bitmap read from bit `bit` on, or None if no value is null.
"""

from typing import Literal

from typing_extensions import Buffer

class FixedStatistics:
    """Result of `fixed` and `fixed_bytes`; what the latter does not find out is None.

    Attributes
    ----------
    count, null_count
        Values, and nulls among them.
    first_valid
        Index of the first value that is not null, or -1.
    width
        Bytes per value.
    all_equal
        Whether the values that are not null have all the same bits (also if there are none).
    run_count
        Runs of values with the same bits, nulls as they are.
    cut_run_count, rle_entries
        Runs, when cut at multiples of `run_cut`, and entries of up to 255 values that they need: a run of R values is
        written as ceil(R / 255) entries.
    rle_size
        Bytes of run-length encoding with 8-bit lengths: ``rle_entries * (width + 1)``.
    bit_width
        Bits of the widest value, taken as unsigned; 8 * `width` for `fixed_bytes`.
    inline_size
        Bytes of inline bit packing: `width` + 128 * W for each group of 1024 values, W its bit width.
    nan_count
        NaNs that are not null.
    min, max
        Extremes of the values that are neither null nor NaN, or None. -0.0 is less than 0.0.
    """

    count: int
    null_count: int
    first_valid: int
    width: int
    all_equal: bool
    run_count: int
    cut_run_count: int | None
    rle_entries: int | None
    bit_width: int
    inline_size: int | None
    nan_count: int | None
    min: int | float | None
    max: int | float | None

    @property
    def rle_size(self) -> int | None: ...

class VariableStatistics:
    """Result of `variable`. Lengths in bytes, of values that are not null (0 if there are none).

    Attributes
    ----------
    count, null_count, first_valid, all_equal
        As in `FixedStatistics`.
    min_length, max_length, total_length
        Shortest, longest, and sum.
    empty_count
        Values of length 0.
    """

    count: int
    null_count: int
    first_valid: int
    all_equal: bool
    min_length: int
    max_length: int
    total_length: int
    empty_count: int

def fixed(
    values: Buffer,
    width: int,
    kind: Literal["u", "i", "f"] = "u",
    validity: Buffer | None = None,
    bit: int = 0,
    widths: Buffer | None = None,
    run_cut: int = 4096,
) -> FixedStatistics:
    """Statistics of values of `width` (1, 2, 4 or 8) bytes, in one pass.

    Parameters
    ----------
    kind
        How values are ordered: unsigned, signed, or floating point (from 2 bytes on).
    widths
        Output for the bit width of each group of 1024 values, one byte each.
    run_cut
        Runs are cut at multiples of it for `cut_run_count` and `rle_entries`; a multiple of 128, 0 for never.

    Raises
    ------
    CodecError
        A buffer is too small or no whole number of values, or an argument has no such value.
    """

def fixed_bytes(values: Buffer, width: int, validity: Buffer | None = None, bit: int = 0) -> FixedStatistics:
    """Runs, nulls and equality of values of any number of bytes."""

def variable(
    values: Buffer, offsets: Buffer, wide: bool, validity: Buffer | None = None, bit: int = 0
) -> VariableStatistics:
    """Lengths and equality of strings between ascending 32-bit (or, `wide`, 64-bit) offsets into `values`.

    Raises
    ------
    CodecError
        Offsets decrease or pass `values`, or a buffer is too small.
    """

def byte_entropy(values: Buffer, width: int) -> float:
    """Shannon entropy in bits of each byte position of the first 64 values, averaged over the positions.

    Small numbers mean that splitting the bytes into streams pays.
    """

class DistinctSketch:
    """HyperLogLog sketch of a set of values: an estimate of how many are distinct.

    The standard error is 1.04 / sqrt(2**precision), 1.6 % for the default. Sketches of equal precision can be merged,
    in other processes and versions too. The estimator is the improved raw estimator of Ertl, "New cardinality
    estimation algorithms for HyperLogLog sketches" (2017), which has no bias for small sets.

    Parameters
    ----------
    precision
        4 to 16: a sketch has ``2**precision`` bytes.
    """

    precision: int

    def __init__(self, precision: int = 12) -> None: ...
    def add_fixed(self, values: Buffer, width: int, validity: Buffer | None = None, bit: int = 0) -> None:
        """Add values of `width` bytes, nulls not."""

    def add_variable(
        self, values: Buffer, offsets: Buffer, wide: bool, validity: Buffer | None = None, bit: int = 0
    ) -> None:
        """Add the strings between ascending 32-bit (or, `wide`, 64-bit) offsets, nulls not.

        A string counts as the same value as a fixed-width value of the same bytes.
        """

    def merge(self, other: DistinctSketch) -> None:
        """Add all that was added to the other sketch."""

    def estimate(self) -> float:
        """Estimated number of distinct values; infinite if no register could be higher."""

    def __bytes__(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: Buffer) -> DistinctSketch:
        """Sketch from its bytes."""
