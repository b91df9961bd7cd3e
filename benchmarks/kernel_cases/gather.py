from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import gather


def fixed(width: int, index_width: int, entries: int) -> Case:
    """Decode a dictionary of a few entries, or gather from as many values as there are indices."""
    values, out = rng().integers(0, 256, entries * width, np.uint8), np.empty(VALUES * width, np.uint8)
    index = rng().integers(0, entries, VALUES).astype(f"<u{index_width}").view(np.uint8)
    return Case(lambda: gather.fixed(values, width, index, index_width, out), out.nbytes)


def variable() -> Case:
    values = rng().integers(0, 256, 20_000, np.uint8)
    value_offsets = np.linspace(0, len(values), 1_001).astype(np.int64)
    index = rng().integers(0, 1_000, VALUES, np.uint32).view(np.uint8)
    out_offsets = np.empty(VALUES + 1, np.int64)
    out = np.empty(gather.variable_offsets(value_offsets, index, 4, out_offsets), np.uint8)
    return Case(lambda: gather.variable(values, value_offsets, index, 4, out_offsets, out), out.nbytes)


def dictionary(width: int, index_width: int, entries: int) -> Case:
    """Decode a dictionary into more than the caches hold."""
    count = 64 * 2**20 // width
    values, out = rng().integers(0, 256, entries * width, np.uint8), np.zeros(count * width, np.uint8)
    index = rng().integers(0, entries, count).astype(f"<u{index_width}").view(np.uint8)
    return Case(lambda: gather.fixed(values, width, index, index_width, out), out.nbytes)


def binary(shortest: int, longest: int, entries: int) -> Case:
    """Decode strings of a dictionary in two passes; the size is that of offsets and bytes."""
    ends = np.concatenate([[0], np.cumsum(rng().integers(shortest, longest + 1, entries))]).astype(np.int32)
    values, places = rng().integers(0, 256, int(ends[-1]), np.uint8), np.empty(4 * VALUES + 1, np.int32)
    index = rng().integers(0, entries, 4 * VALUES, np.uint32)
    out = np.zeros(gather.binary_offsets(values, ends, False, index, 4, False, places), np.uint8)

    def both() -> None:
        gather.binary_offsets(values, ends, False, index, 4, False, places)
        gather.binary(values, ends, False, index, 4, out)

    return Case(both, places.nbytes + out.nbytes)


def short(shortest: int, longest: int, entries: int) -> Case:
    """Decode strings of a dictionary in one pass; the size is that of offsets and bytes."""
    ends = np.concatenate([[0], np.cumsum(rng().integers(shortest, longest + 1, entries))]).astype(np.int32)
    values, places = rng().integers(0, 256, int(ends[-1]), np.uint8), np.empty(4 * VALUES + 1, np.int32)
    index = rng().integers(0, entries, 4 * VALUES, np.uint32)
    table = gather.ShortEntries(values, ends, False)
    out = np.zeros(table.room(len(index)), np.uint8)
    size = places.nbytes + table.gather(index, 4, False, places, out)
    return Case(lambda: table.gather(index, 4, False, places, out), size)


def expand() -> Case:
    ends = np.concatenate([[0], np.cumsum(rng().integers(0, 16, VALUES))]).astype(np.int32)
    begins, out = rng().integers(0, VALUES, VALUES), np.empty(int(ends[-1]), np.int64)
    ends_bytes = ends.view(np.uint8)
    return Case(lambda: gather.expand_ranges(begins, ends_bytes, False, out), out.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "gather.fixed, 1 byte, dictionary u8": lambda: fixed(1, 1, 200),
    "gather.fixed, 4 bytes, dictionary u8": lambda: fixed(4, 1, 200),
    "gather.fixed, 8 bytes, dictionary u16": lambda: fixed(8, 2, 2_000),
    "gather.fixed, 4 bytes, random u32": lambda: fixed(4, 4, VALUES),
    "gather.fixed, 8 bytes, random u32": lambda: fixed(8, 4, VALUES),
    "gather.fixed, 16 bytes, random u64": lambda: fixed(16, 8, VALUES),
    "gather.fixed, 4 bytes, 64 MiB, dictionary u8": lambda: dictionary(4, 1, 200),
    "gather.fixed, 4 bytes, 64 MiB, dictionary u32": lambda: dictionary(4, 4, 200),
    "gather.fixed, 8 bytes, 64 MiB, dictionary u8": lambda: dictionary(8, 1, 200),
    "gather.fixed, 8 bytes, 64 MiB, dictionary u32": lambda: dictionary(8, 4, 2_000),
    "gather.fixed, 16 bytes, 64 MiB, dictionary u32": lambda: dictionary(16, 4, 2_000),
    "gather.binary, 1 to 8 bytes": lambda: binary(1, 8, 1_000),
    "gather.binary, 5 to 20 bytes": lambda: binary(5, 20, 1_000),
    "gather.binary, 20 to 60 bytes": lambda: binary(20, 60, 1_000),
    "gather.ShortEntries, 1 to 8 bytes": lambda: short(1, 8, 1_000),
    "gather.ShortEntries, 5 to 20 bytes": lambda: short(5, 20, 1_000),
    "gather.variable": variable,
    "gather.expand_ranges": expand,
}
