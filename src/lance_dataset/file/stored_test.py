"""Conditions on the values of one column, in the forms in which columns test them without decoding the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lancecodec.intervals import UNSIGNED, IntervalTest

__all__ = ["SEARCHED_BITS", "IndexTest", "StoredTest"]

#: Sizes in bits of the values that can be searched.
SEARCHED_BITS = (8, 16, 32, 64, 128)

#: Intervals of indices above which it is faster to look up each index.
_MOST_INTERVALS = 8
#: Exceptions that a condition may raise for a value that no row has.
_FAILURES = (pa.ArrowException, ArithmeticError, ValueError, TypeError, LookupError)


@dataclass(frozen=True, eq=False)
class StoredTest:
    """A condition on the values of one column.

    Attributes
    ----------
    evaluate
        Computes the condition for values of the column, some of which may be null. The result is never null.
    intervals
        The condition as a test of plain values; None if it is not one.
    validity
        The results for any value and for null, if the condition asks only for nulls; otherwise None.
    uses_bounds
        False to look at the values even where stored bounds decide the condition.
    """

    evaluate: Callable[[pa.Array], pa.BooleanArray]
    intervals: IntervalTest | None = None
    validity: tuple[bool, bool] | None = None
    uses_bounds: bool = True

    def of_entries(self, entries: pa.Array) -> tuple[NDArray[np.bool_], bool] | None:
        """Return the results for the entries of a dictionary and for null.

        None if the condition fails for one of them: no row might have that value.
        """
        try:
            mask = self.evaluate(pa.concat_arrays([entries, pa.nulls(1, entries.type)]))
        except _FAILURES:
            return None
        passes = mask.to_numpy(zero_copy_only=False)
        return passes[:-1], bool(passes[-1])


@dataclass(frozen=True, eq=False)
class IndexTest:
    """A condition on dictionary indices.

    Attributes
    ----------
    intervals
        The test of the indices.
    entries
        Number of entries that indices may have.
    marks
        One byte per entry, 1 if it passes, if there are too many intervals. Then the test has one around all entries
        that pass.
    """

    intervals: IntervalTest
    entries: int
    marks: NDArray[np.uint8] | None = None

    @staticmethod
    def of(passes: NDArray[np.bool_], null: bool, bits: int) -> IndexTest:
        """Return the test of indices of `bits` bits for entries that pass or do not."""
        flags = passes[: 1 << bits].view(np.int8)
        edges = np.flatnonzero(np.diff(flags, prepend=np.int8(0), append=np.int8(0)))
        few = len(edges) <= 2 * _MOST_INTERVALS
        lows, highs = edges[::2] if few else edges[:1], edges[1::2] - 1 if few else edges[-1:] - 1
        test = IntervalTest(bits, UNSIGNED, list(zip(lows.tolist(), highs.tolist(), strict=True)), null=null)
        return IndexTest(test, len(passes), None if few else passes.view(np.uint8))
