"""Least and greatest values of parts of arrays, against plain Python."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.index.scalar.extremes import extremes

_MAKERS: dict[Any, Any] = {
    pa.int8(): lambda n: n % 256 - 128,
    pa.uint16(): lambda n: n % 65_536,
    pa.int64(): lambda n: (n - 50_000) << 46,
    pa.uint64(): lambda n: (1 << 64) - 1 - n,
    pa.bool_(): lambda n: n % 2 == 0,
    pa.float64(): lambda n: (n - 50_000) / 8,
    pa.string(): str,
    pa.large_binary(): lambda n: bytes([n % 256, n % 7]),
    pa.binary(2): lambda n: bytes([n % 256, n % 7]),
    pa.decimal128(12, 2): lambda n: decimal.Decimal(n - 50_000) / 4,
    pa.decimal128(38, 0): lambda n: decimal.Decimal((n - 50_000) << 80),
    pa.decimal256(60, 0): lambda n: decimal.Decimal((n - 50_000) << 80),
    pa.timestamp("us"): lambda n: n - 50_000,
}


@pytest.mark.parametrize("kind", _MAKERS, ids=str)
@pytest.mark.parametrize("part", [1, 5, 700])
def test_parts_of_any_type(kind: Any, part: int) -> None:
    random = np.random.default_rng(part)
    for share in (0.0, 0.4, 0.97, 1.0):
        count = int(random.integers(1, 3000))
        numbers, nulls = random.integers(0, 100_000, count + 3), random.random(count + 3) < share
        values = [None if null else _MAKERS[kind](int(n)) for n, null in zip(numbers, nulls, strict=True)]
        array = pa.array(values, kind)[3:]
        starts = np.unique(np.append(0, random.integers(0, count, count // part)))
        least, greatest = extremes(array, starts)
        found = [array[a:b].drop_null().to_pylist() for a, b in zip(starts, [*starts[1:], count], strict=True)]
        assert least.to_pylist() == [min(each) if each else None for each in found]
        assert greatest.to_pylist() == [max(each) if each else None for each in found]
        for each in (least, greatest):
            assert each.type == kind
            each.validate(full=True)
