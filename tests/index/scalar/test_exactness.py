"""Answers of indices where orders of values, types and repeats make a difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset

_COUNT = 3000


def _floats(kind: pa.DataType) -> pa.Array:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    values = [*bits.tolist(), 0.0, -0.0, 1.0, -1.0, 5.5, float("inf"), float("-inf")]
    chosen = np.random.default_rng(1).integers(0, len(values), _COUNT)
    array = np.array([*bits, *values[3:]])[chosen]
    return pa.array(array.astype(kind.to_pandas_dtype()), kind, mask=np.arange(_COUNT) % 17 == 0, from_pandas=False)


_NUMBERS = ("0.0", "-0.0", "1.0", "-1.0", "5.5", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)")


@pytest.mark.parametrize("index", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_nan_of_either_sign_is_found_as_a_scan_finds_it(
    index: str, kind: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"x": _floats(kind)}), tmp_path / "t", max_rows_per_file=1100)
    dataset.create_scalar_index("x", index)
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    filters = [f"x {operator} {number}" for operator in ("=", "!=", "<", "<=", ">", ">=") for number in _NUMBERS]
    filters += [f"NOT ({each})" for each in filters]
    filters += ["x BETWEEN -1.0 AND 5.5", "x NOT BETWEEN -1.0 AND 5.5", "x IN (0.0, 5.5)", "x NOT IN (0.0, 5.5)"]
    filters += ["x > 0.0 AND x < 6.0", "x < 0.0 OR x > 5.0", "x IS NULL", "x IS NOT NULL AND x > 1.0"]
    for text in filters:
        expected = dataset.scanner(filter=text, use_scalar_index=False).count_rows()
        assert dataset.scanner(filter=text).count_rows() == expected, text


def test_constants_of_other_types_than_the_items(tmp_path: Path) -> None:
    lists = pa.array([[1, 2], [3], None], pa.list_(pa.int8()))
    dataset = lance_dataset.write_dataset(pa.table({"i": range(3), "l": lists}), tmp_path / "t")
    dataset.create_scalar_index("i", "BTREE")
    dataset.create_scalar_index("l", "LABEL_LIST")
    for text in ("array_has(l, 300)", "array_has(l, 1.5)", "i = 1 OR array_has(l, 300)", "array_contains(l, 3)"):
        expected = dataset.scanner(filter=text, use_scalar_index=False).to_table()
        assert dataset.scanner(filter=text).to_table() == expected


def test_a_fragment_that_is_asked_for_twice(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"k": range(50_000)}), tmp_path / "t")
    dataset.create_scalar_index("k", "BTREE")
    dataset.prewarm_index("k_idx")
    fragments = dataset.get_fragments() * 2
    assert dataset.scanner(filter="k = 5", fragments=fragments).to_table()["k"].to_pylist() == [5, 5]
    assert dataset.scanner(filter="k = 5", fragments=fragments).count_rows() == 2


def test_batches_of_wide_rows_come_in_portions(tmp_path: Path) -> None:
    rows = 600
    payload = pa.array([bytes(100_000)] * rows, pa.large_binary())
    table = pa.table({"k": np.arange(rows * 500) % 500}).slice(0, rows).append_column("p", payload)
    dataset = lance_dataset.write_dataset(table.set_column(0, "k", pa.array([1] * rows)), tmp_path / "t")
    dataset.create_scalar_index("k", "BTREE")
    scanner = dataset.scanner(filter="k = 1", batch_size=8, fast_search=True)
    before = pa.total_allocated_bytes()
    first = next(scanner.to_batches())
    assert first.num_rows == 8
    assert pa.total_allocated_bytes() - before < 40 << 20
    assert sum(batch.num_rows for batch in scanner.to_batches()) == rows
