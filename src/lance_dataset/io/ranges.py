"""Byte ranges, merged if they are near each other, so that a slow store gets fewer requests."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_dataset.late_dataclass import dataclass

__all__ = ["MergedRange", "merge_ranges", "split_merged"]


@dataclass(frozen=True)
class MergedRange:
    """One request that serves several ranges.

    Attributes
    ----------
    offset, length
        Bytes to fetch.
    members
        Positions of the ranges inside, in the list of all ranges.
    """

    offset: int
    length: int
    members: tuple[int, ...]


def merge_ranges(ranges: Sequence[tuple[int, int]], max_gap: int, max_length: int) -> list[MergedRange]:
    """Merge ranges that lie near each other.

    Parameters
    ----------
    ranges
        (offset, length) pairs in any order; they may overlap.
    max_gap
        Maximum number of unwanted bytes between two ranges that become one.
    max_length
        Maximum length of a merged request; single ranges are never split.

    Returns
    -------
    list of MergedRange
        Requests in ascending order of offset; together they hold every range exactly once.
    """
    order = sorted(range(len(ranges)), key=ranges.__getitem__)
    merged: list[MergedRange] = []
    members: list[int] = []
    start = end = 0
    for index in order:
        offset, length = ranges[index]
        if members and offset - end <= max_gap and max(end, offset + length) - start <= max_length:
            members.append(index)
            end = max(end, offset + length)
            continue
        if members:
            merged.append(MergedRange(start, end - start, tuple(members)))
        members, start, end = [index], offset, offset + length
    if members:
        merged.append(MergedRange(start, end - start, tuple(members)))
    return merged


def split_merged(
    ranges: Sequence[tuple[int, int]], requests: Sequence[MergedRange], answers: Sequence[pa.Buffer]
) -> list[pa.Buffer]:
    """Cut the answers to merged requests into one zero-copy buffer per range."""
    buffers: list[pa.Buffer] = [pa.py_buffer(b"")] * len(ranges)
    for request, answer in zip(requests, answers, strict=True):
        for index in request.members:
            offset, length = ranges[index]
            buffers[index] = answer.slice(offset - request.offset, length)
    return buffers
