"""Tests of decimal products and casts to more places, compared with Python: slices, values below nulls, scalars."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.expr.compiled import compile_expression

LARGEST = 10**38 - 1
digits = st.integers(-(10**9), 10**9) | st.sampled_from([0, 1, -1, 10**15 - 1, 1 - 10**15])


def decimals(values: list[int | None], kind: pa.DataType, hidden: int = 2**126) -> pa.Array:
    """Return decimals of some digits, in a slice of a larger array; nulls hide other values."""
    framed = [3, None, 5, *values, 7]
    content = b"".join((hidden if value is None else value).to_bytes(16, "little", signed=True) for value in framed)
    bits = np.packbits([value is not None for value in framed], bitorder="little").tobytes()
    array = pa.Array.from_buffers(kind, len(framed), [pa.py_buffer(bits), pa.py_buffer(content)])
    return array.slice(3, len(values))


def evaluated(text: str, **columns: pa.Array) -> pa.Array:
    batch = pa.record_batch(columns)
    return compile_expression(text, batch.schema).evaluate(batch)


def exact(a: Decimal | None, b: Decimal | None) -> Decimal | None:
    with localcontext() as context:
        context.prec = 100
        return None if a is None or b is None else a * b


@given(
    st.lists(st.tuples(st.none() | digits, st.none() | digits), min_size=1, max_size=20), st.sampled_from([2, 2**126])
)
def test_products(pairs: list[tuple[int | None, int | None]], hidden: int) -> None:
    kind = pa.decimal128(15, 2)
    a = decimals([left for left, _ in pairs], kind, hidden)
    b = decimals([right for _, right in pairs], kind, hidden)
    found = evaluated("a * b", a=a, b=b)
    assert found.type == pa.decimal128(31, 4)
    assert found.to_pylist() == [exact(x, y) for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)]
    found.validate(full=True)
    products = [exact(exact(x, y), x) for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)]
    if all(product is None or abs(product).scaleb(6) <= LARGEST for product in products):
        wide = evaluated("a * b * a", a=a, b=b)
        assert wide.type == pa.decimal128(38, 6)
        assert wide.to_pylist() == products


@given(st.lists(st.none() | digits, min_size=1, max_size=20), st.sampled_from([2, 2**126]))
def test_products_with_a_number(values: list[int | None], hidden: int) -> None:
    a = decimals(values, pa.decimal128(15, 2), hidden)
    assert evaluated("a * 1.25", a=a).to_pylist() == [exact(x, Decimal("1.25")) for x in a.to_pylist()]
    assert evaluated("-2.5 * a", a=a).to_pylist() == [exact(x, Decimal("-2.5")) for x in a.to_pylist()]


@given(st.lists(st.none() | digits, min_size=1, max_size=20), st.sampled_from([2, 2**126]))
def test_casts_to_more_places(values: list[int | None], hidden: int) -> None:
    a = decimals(values, pa.decimal128(15, 2), hidden)
    found = evaluated("cast(a as decimal(30, 9))", a=a)
    assert found.type == pa.decimal128(30, 9)
    assert found.to_pylist() == a.to_pylist()


def test_what_does_not_fit_is_refused() -> None:
    a = decimals([10**15 - 1, 1], pa.decimal128(15, 2))
    with pytest.raises(pa.ArrowInvalid, match="does not fit"):
        evaluated("cast(a as decimal(16, 4))", a=a)
    b = decimals([10**37, 1], pa.decimal128(38, 0))
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        evaluated("b * b", b=b)
