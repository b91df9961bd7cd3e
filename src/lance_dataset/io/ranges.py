"""Byte ranges: merging near ones, so that a slow store is asked fewer times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["MergedRange", "merge_ranges", "split_merged"]


@dataclass(frozen=True)
class MergedRange:
    """One request that serves several asked ranges.

    Attributes
    ----------
    offset, length
        The bytes to fetch.
    members
        Positions, in the asked list, of the ranges inside.
    """

    offset: int
    length: int
    members: tuple[int, ...]


def merge_ranges(ranges: Sequence[tuple[int, int]], max_gap: int, max_length: int) -> list[MergedRange]:
    """Merge ranges that lie near each other.

    Parameters
    ----------
    ranges
        (offset, length) pairs in any order, overlaps allowed.
    max_gap
        Two ranges with at most this many unwanted bytes between them become one.
    max_length
        Merging stops before a request grows beyond this; single ranges are never split.

    Returns
    -------
    list of MergedRange
        In ascending order of offset; together they hold every asked range exactly once.
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
    """Cut the answers to merged requests back into one zero-copy buffer per asked range."""
    buffers: list[pa.Buffer] = [pa.py_buffer(b"")] * len(ranges)
    for request, answer in zip(requests, answers, strict=True):
        for index in request.members:
            offset, length = ranges[index]
            buffers[index] = answer.slice(offset - request.offset, length)
    return buffers
