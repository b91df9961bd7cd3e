"""Merges that find their rows through indices."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.changes.keys.source import Source
from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched
from lance_dataset.changes.merge.matching import Matching, matching_scan

_ROWS = 6000


def _values(kind: pa.DataType) -> pa.Array:
    random = np.random.default_rng(3)
    numbers = random.permutation(_ROWS * 3)[:_ROWS] - _ROWS
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array([f"k{number}" for number in numbers.tolist()]).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(int(number)) / 100 for number in numbers], kind)
    if pa.types.is_floating(kind):
        return pa.array(numbers * 0.5, kind)
    return pa.array(numbers, pa.int64()).cast(kind)


_KINDS = [pa.int64(), pa.int32(), pa.float64(), pa.string(), pa.binary(), pa.decimal128(12, 2), pa.timestamp("us")]


@pytest.mark.parametrize("index", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("kind", _KINDS, ids=str)
def test_merges_through_an_index_change_the_same_rows(
    kind: pa.DataType, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    keys = _values(kind)
    table = pa.table({"k": keys, "v": np.arange(_ROWS)})
    table = pa.concat_tables([table, pa.table({"k": pa.nulls(5, kind), "v": np.arange(5)})])
    results = []
    for name, indexed in (("a", True), ("b", False)):
        dataset = lance_dataset.write_dataset(table, tmp_path / name, max_rows_per_file=1700)
        if indexed:
            dataset.create_scalar_index("k", index)
        dataset.delete("v % 11 = 3")
        dataset.insert(table.slice(0, 9).set_column(1, "v", pa.array(range(100_000, 100_009))))
        fresh = _values(kind).take(pa.array(np.arange(0, _ROWS, 97)))
        source = pa.table({"k": pa.concat_arrays([fresh, pa.nulls(2, kind)]), "v": np.arange(len(fresh) + 2) - 500})
        source = source.slice(9) if name else source
        done = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(source)
        results.append((done, dataset.to_table().sort_by([("v", "ascending"), ("k", "ascending")])))
    assert results[0] == results[1]


def _request(dataset: lance_dataset.LanceDataset, keys: pa.Array, **clauses: Any) -> Any:
    wanted = MergeClauses(("k",), matched=WhenMatched.UPDATE, **clauses)
    with Source.collect(pa.table({"k": keys}).to_batches(), pa.schema([("k", keys.type)])) as source:
        return matching_scan(dataset.snapshot, Matching(wanted, source, [source.column("k")]))


def test_an_index_is_used_for_few_keys(tmp_path: Path) -> None:
    count = 400_000
    table = pa.table({"k": np.random.default_rng(1).permutation(count), "v": np.arange(count)})
    dataset = lance_dataset.write_dataset(table, tmp_path / "t")
    dataset.create_scalar_index("k", "BTREE")
    dataset.prewarm_index("k_idx")
    few, many = pa.array([5, 17, -3, count]), pa.array(np.arange(0, count, 2))
    assert _request(dataset, few).used_indices
    assert not _request(dataset, few, use_index=False).used_indices
    assert not _request(dataset, few, deletes_rest=True).used_indices
    assert not _request(dataset, many).used_indices


@pytest.mark.parametrize("spread", ["even", "squares", "repeats", "extremes"])
def test_keys_are_found_in_values_of_any_distribution(
    spread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    random = np.random.default_rng(9)
    values = {
        "even": np.arange(30_000) * 3,
        "squares": np.arange(30_000) ** 2,
        "repeats": np.repeat(np.arange(10), 3_000),
        "extremes": np.concatenate([[-(2**63), 2**63 - 1], random.integers(-(2**63), 2**63 - 1, 20_000)]),
    }[spread]
    dataset = lance_dataset.write_dataset(pa.table({"k": random.permutation(values)}), tmp_path / "t")
    dataset.create_scalar_index("k", "BTREE")
    keys = np.unique(np.concatenate([random.choice(values, 60), random.integers(0, 1000, 40)]))
    request = _request(dataset, pa.array(keys))
    assert request.used_indices
    found = sum(int((ranges.stops - ranges.starts).sum()) for ranges in request.rows.values())
    assert found == int(np.isin(values, keys).sum())
