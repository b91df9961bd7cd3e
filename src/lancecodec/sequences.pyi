"""Sequences of 2.3: ranges, deltas, dictionaries, and the frames around the parts of nested ones.

Sequences are offsets, positions and counts: unsigned integers of 32 or 64 bits. Whatever leaves that width is an error.
"""

from typing_extensions import Buffer

def decode_range(start: int, step: int, n: int, bits: int, out: Buffer) -> None:
    """Write ``start + i * step`` for i from 0 to n - 1; n is at least 2 and `step` positive."""

def range_of(values: Buffer, bits: int) -> tuple[int, int] | None:
    """Return start and step if the values are a range, and else None."""

def decode_delta(base: int, deltas: Buffer, bits: int, out: Buffer) -> None:
    """Write `base` and its sums with the first one, two, ... deltas: one value more than there are deltas."""

def encode_delta(values: Buffer, bits: int, out: Buffer) -> int:
    """Write the differences of at least two values that do not descend, and return the first value."""

def decode_dictionary(indices: Buffer, items: Buffer, bits: int, out: Buffer) -> None:
    """Write the item of each index; indices have 32 bits, and there are 1 to 4096 items of `bits` bits."""

def rle_frame(data: Buffer) -> tuple[int, int, int]:
    """Split the payload of a run-length sequence.

    Returns
    -------
    tuple of int
        Where the run values begin, where they end and the run lengths begin, where these end.
    """

def dictionary_frame(data: Buffer) -> tuple[int, int, int]:
    """Split the payload of a dictionary sequence.

    Returns
    -------
    tuple of int
        Where the indices begin, where they end and the items begin, where these end.
    """

def runs_of_constant(length: int, n: int) -> int:
    """Number of runs of one length that make up n values exactly."""

def runs_of_range(start: int, step: int, n: int) -> int:
    """Number of runs of lengths ``start``, ``start + step``, ... that make up n values exactly."""
