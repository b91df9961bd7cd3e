"""All values at a path of all documents of a column, found by compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.expr.functions.json_columns import data_of, described_steps, located
from lance_dataset.expr.functions.json_path import Every, Walked, Where
from lance_dataset.expr.functions.json_programs import Program, program_of
from lance_dataset.file.buffers import octets
from lance_dataset.file.json_columns import decode_array
from lancecodec import jsonb

__all__ = ["Found", "found_member", "joined_texts", "walk"]


@dataclass(frozen=True)
class Found:
    """Values that were found in documents, in their order.

    Attributes
    ----------
    data
        Bytes of all documents.
    rows
        The document of each value.
    kinds, words, ranges
        The values, see `lancecodec.jsonb.find`.
    left
        For each document whether compiled code left it: it is damaged, is text, or has values that are not known.
        Its values are not complete.
    """

    data: memoryview
    rows: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    words: NDArray[np.int64]
    ranges: NDArray[np.int64]
    left: NDArray[np.bool_]

    def followed(self, steps: Sequence[str | int]) -> Found:
        """Return the values at a path from each value."""
        kinds, words, ranges = self.kinds.copy(), self.words.copy(), self.ranges.copy()
        keys, described = described_steps([_key_and_place(step) for step in steps])
        jsonb.follow(self.data, keys, described, kinds, words, ranges)
        return self._checked(Found(self.data, self.rows, kinds, words, ranges, self.left))

    def counts(self, every: Every, alone: int) -> NDArray[np.int64]:
        """Count the values in containers: -1 if one is damaged, and `alone` for values of other kinds."""
        counts = np.empty(len(self.kinds), np.int64)
        jsonb.count(self.data, every is Every.MEMBER, alone, self.kinds, self.ranges, counts)
        return counts

    def children(self, every: Every) -> Found:
        """Return the values in containers. A value that is not an array is its own only element."""
        counts = self.counts(every, 1 if every is Every.ELEMENT else 0)
        left = self.left.copy()
        left[self.rows[counts < 0]] = True
        np.maximum(counts, 0, out=counts)
        total = int(counts.sum())
        kinds, words, ranges = np.empty(total, np.uint8), np.empty(total, np.int64), np.empty(2 * total, np.int64)
        parts = (self.kinds, self.words, self.ranges)
        jsonb.children(self.data, every is Every.MEMBER, *parts, counts, kinds, words, ranges)
        return self._checked(Found(self.data, np.repeat(self.rows, counts), kinds, words, ranges, left))

    def meeting(self, program: Program) -> Found:
        """Return the values that meet a condition."""
        verdicts = np.empty(len(self.kinds), np.uint8)
        values = (self.kinds, self.words, self.ranges)
        jsonb.test(self.data, program.texts, program.steps, program.tests, *values, verdicts)
        left = self.left.copy()
        left[self.rows[verdicts == jsonb.LEFT]] = True
        return Found(self.data, self.rows, *values, left).chosen(verdicts == jsonb.MET)

    def firsts(self) -> Found:
        """Return the first value of each document."""
        return self.chosen(np.append(True, self.rows[1:] != self.rows[:-1])[: len(self.rows)])

    def documents(self) -> pa.LargeBinaryArray:
        """Return the values as documents of their own."""
        count = len(self.kinds)
        size = 8 * count + int(self.ranges[1::2].sum() - self.ranges[::2].sum())
        out, ends = pa.allocate_buffer(size, resizable=True), np.zeros(count + 1, np.int64)
        jsonb.documents(self.data, self.kinds, self.ranges, octets(out), ends)
        out.resize(int(ends[-1]))
        return pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(ends), out], 0)

    def texts(self) -> pa.StringArray:
        """Return the values as JSON text."""
        return decode_array(self.documents(), "a JSON document")

    def chosen(self, chosen: NDArray[np.bool_]) -> Found:
        """Return some of the values."""
        ranges = self.ranges.reshape(-1, 2)[chosen].ravel()
        return Found(self.data, self.rows[chosen], self.kinds[chosen], self.words[chosen], ranges, self.left)

    def _checked(self, found: Found) -> Found:
        """Leave out missing values, and note the documents of those that are not known."""
        unknown = found.kinds == jsonb.OTHER
        if unknown.any():
            found.left[found.rows[unknown]] = True
        missing = found.kinds == jsonb.MISSING
        return found.chosen(~(missing | unknown)) if missing.any() or unknown.any() else found

    def by_row(self, values: pa.Array) -> pa.Array:
        """Put values, one for each of the first values of documents, into the rows of these; others are null."""
        places = np.full(len(self.left), -1, np.int64)
        places[self.rows] = np.arange(len(self.rows))
        return values.take(pa.array(places, mask=places < 0))


def walk(documents: pa.Array, steps: Sequence[Walked]) -> Found | None:
    """Find all values at a path of each document; null documents have none.

    Returns
    -------
    Found
        The values; None if compiled code has no program for a condition of the path.
    """
    conditions = {step: program_of(step.test) for step in steps if isinstance(step, Where)}
    if None in conditions.values():
        return None
    parts = [(is_plain, list(group)) for is_plain, group in groupby(steps, lambda step: isinstance(step, _PLAIN))]
    first = parts.pop(0)[1] if parts and parts[0][0] else []
    found = _started(documents, [_key_and_place(step) for step in first if isinstance(step, _PLAIN)])
    for is_plain, part in parts:
        if is_plain:
            found = found.followed([step for step in part if isinstance(step, _PLAIN)])
            continue
        for step in part:
            if isinstance(step, Every):
                found = found.children(step)
            elif isinstance(step, Where) and (program := conditions[step]) is not None:
                found = found.meeting(program)
    return found


#: Steps to one value.
_PLAIN = (str, int)


def found_member(documents: pa.Array, key: str, place: int | None) -> Found:
    """Find the value under a key of objects, or at a place of arrays."""
    return _started(documents, [(key, place)])


def _started(documents: pa.Array, steps: Sequence[tuple[str | None, int | None]]) -> Found:
    values = located(documents, steps)
    count = len(documents)
    left = np.zeros(count, np.bool_)
    data = octets(data_of(documents))
    found = Found(data, np.arange(count), values.kinds, values.integers, values.ranges, left)
    return found._checked(found)


def _key_and_place(step: str | int) -> tuple[str | None, int | None]:
    return (step, None) if isinstance(step, str) else (None, step)


def joined_texts(found: Found, texts: pa.StringArray, count: int) -> pa.StringArray:
    """Return the only text of each document; several as an array, and null for none."""
    numbers = np.bincount(found.rows, minlength=count)
    offsets = np.append(0, np.cumsum(numbers)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts, mask=pa.array(numbers == 0))
    joined = pc.binary_join(lists, ",")
    several = numbers > 1
    if not several.any():
        return joined
    return pc.if_else(pa.array(several), pc.binary_join_element_wise("[", joined, "]", ""), joined)
