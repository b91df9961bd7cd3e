"""Tests of the types of values that facets count."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset

HALVES = [np.float16(2.5), np.float16(-1), None]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.uint64(), [2**64 - 1, 0, None]),
        (pa.float16(), HALVES),
        (pa.list_(pa.float16()), [[HALVES[0], HALVES[1]], [HALVES[0]], None]),
        (pa.float64(), [0.5, -1.0, None]),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-2.00"), None]),
        (pa.decimal256(40, 2), [Decimal("1.50"), Decimal("-2.00"), None]),
        (pa.date32(), [date(2020, 1, 2), date(1960, 1, 1), None]),
        (pa.duration("s"), [timedelta(seconds=5), timedelta(seconds=1), None]),
        (pa.binary(), [b"b", b"a", None]),
        (pa.binary(2), [b"bb", b"aa", None]),
        (pa.dictionary(pa.int32(), pa.string()), ["b", "a", None]),
    ],
    ids=str,
)
def test_types(tmp_path: Path, kind: Any, values: list[Any]) -> None:
    """Values of any single type, and of lists of them, are counted; of equal counts, the smallest value is first."""
    data = pa.table({"t": ["apple"] * 5, "v": pa.array([*values, *values[:2]], kind)})
    dataset = lance_dataset.write_dataset(data, tmp_path / "t.lance")
    found = dataset.facets("apple", ["v"], text_columns=["t"])["v"]
    flat: list[Any] = [*values, *values[:2]]
    if pa.types.is_list(kind):
        flat = [each for row in flat if row is not None for each in row]
    different = [each for each in dict.fromkeys(flat) if each is not None]
    different.sort(key=lambda each: (-flat.count(each), each))
    different += [None] if None in flat else []
    assert found["value"].to_pylist() == different
    assert found["count"].to_pylist() == [flat.count(each) for each in different]
