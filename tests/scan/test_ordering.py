"""Tests of sorted scans: order of every type as in the reference, several keys, top rows, stable ties."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_dataset
from lance_dataset import ColumnOrdering
from lance_dataset.errors import UnsupportedError
from lance_dataset.scan import ordering
from lance_dataset.scan.request import Ordering
from lance_dataset.scan.sort_keys import check_sortable, sort_indices, sortable

ReferenceOrdering = import_module("lance.dataset").ColumnOrdering
NAN, INF = float("nan"), float("inf")
VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "bool": (pa.bool_(), [True, False, None, True]),
    "i8": (pa.int8(), [3, -128, None, 127, 0]),
    "u64": (pa.uint64(), [2**64 - 1, 0, None, 2**63, 7]),
    "f16": (pa.float16(), [1.5, NAN, None, -0.0, 0.0, -INF, INF, -2.5]),
    "f32": (pa.float32(), [1.5, NAN, None, -0.0, 0.0, -INF, INF, -2.5]),
    "f64": (pa.float64(), [1.5, NAN, None, -NAN, -0.0, 0.0, -INF, INF, -2.5]),
    "text": (pa.string(), ["b", "", None, "a", "é", "ab", "日本"]),
    "large": (pa.large_string(), ["b", "", None, "a"]),
    "binary": (pa.binary(), [b"a", b"", None, b"\xff", b"ab"]),
    "fixed": (pa.binary(2), [b"ab", None, b"\x00\xff", b"zz"]),
    "date": (pa.date32(), [dt.date(2020, 1, 1), None, dt.date(1969, 1, 1)]),
    "time": (pa.time64("us"), [dt.time(1, 2), None, dt.time(0, 0, 1)]),
    "moment": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc), None, dt.datetime(1900, 1, 1)],
    ),
    "span": (pa.duration("s"), [dt.timedelta(5), None, dt.timedelta(-5)]),
    "short": (pa.decimal128(12, 2), [Decimal("1.50"), None, Decimal("-3.25"), Decimal("0.00")]),
    "long": (pa.decimal128(38, 2), [Decimal("1.50"), None, Decimal(-(10**30)), Decimal(10**30)]),
    "wide": (pa.decimal256(50, 1), [Decimal("1.5"), None, Decimal(-(10**40))]),
    "codes": (pa.dictionary(pa.int8(), pa.string()), ["x", "y", None, "a", "x"]),
}
ROWS = 60


def column(name: str) -> pa.Array:
    kind, values = VALUES[name]
    spread = [values[(row * 7 + row // 5) % len(values)] for row in range(ROWS)]
    if pa.types.is_dictionary(kind):
        return pa.array(spread, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(spread, pa.float64()).cast(kind) if name == "f16" else pa.array(spread, kind)


def build() -> pa.Table:
    table = pa.table({name: column(name) for name in VALUES})
    inner = pa.StructArray.from_arrays([column("i8"), column("text")], ["a", "b"])
    holes = pa.StructArray.from_arrays([column("i8")], ["a"], mask=pa.array([row % 9 == 4 for row in range(ROWS)]))
    table = table.append_column("st", inner).append_column("holes", holes)
    return table.append_column("id", pa.array(range(ROWS)))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[lance_dataset.LanceDataset, lance.LanceDataset, pa.Table]:
    table, uri = build(), str(tmp_path_factory.mktemp("order") / "d")
    lance_dataset.write_dataset(table, uri, max_rows_per_file=17, data_storage_version="2.2")
    return lance_dataset.dataset(uri), lance.dataset(uri), table


def as_stored(table: pa.Table, keys: list[ColumnOrdering]) -> list[int]:
    """Return the rows in order, with ties in stored order: sort by one key after another, the last one first."""
    order = list(range(table.num_rows))
    for key in reversed(keys):
        values = table[key.column_name].to_pylist()
        nulls = [row for row in order if values[row] is None]
        valid = [row for row in order if values[row] is not None]
        valid.sort(key=values.__getitem__, reverse=not key.ascending)
        order = nulls + valid if key.nulls_first else valid + nulls
    return order


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("name", [*VALUES, "st.a", "holes.a"])
def test_as_the_reference_orders(stored, name: str, ascending: bool, nulls_first: bool) -> None:
    ours, theirs, _ = stored
    keys = [lance_dataset.ColumnOrdering(name, ascending, nulls_first), lance_dataset.ColumnOrdering("id")]
    found = ours.scanner(order_by=keys).to_table()
    reference_keys = [ReferenceOrdering(key.column_name, key.ascending, key.nulls_first) for key in keys]
    assert found["id"].equals(theirs.scanner(order_by=reference_keys).to_table()["id"])
    for limit, offset in [(1, 0), (7, 0), (9, 11), (100, 50), (5, 70)]:
        part = ours.scanner(columns=["id"], order_by=keys, limit=limit, offset=offset).to_table()
        assert part["id"].to_pylist() == found["id"].to_pylist()[offset : offset + limit]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_ties_stay_as_they_are_stored(stored, data: st.DataObject) -> None:
    ours, _, table = stored
    names = st.sampled_from(["bool", "i8", "u64", "text", "binary", "date", "short", "long"])
    keys = [
        ColumnOrdering(name, data.draw(st.booleans()), data.draw(st.booleans()))
        for name in data.draw(st.lists(names, min_size=1, max_size=3, unique=True))
    ]
    expected = as_stored(table, keys)
    assert ours.scanner(columns=["id"], order_by=keys).to_table()["id"].to_pylist() == expected
    limit, offset = data.draw(st.integers(0, 70)), data.draw(st.integers(0, 70))
    batch = data.draw(st.sampled_from([1, 4, 8192]))
    scanner = ours.scanner(columns=["id"], order_by=keys, limit=limit, offset=offset, batch_size=batch)
    assert scanner.to_table()["id"].to_pylist() == expected[offset : offset + limit]
    batches = list(scanner.to_batches())
    assert [row for piece in batches for row in piece["id"].to_pylist()] == expected[offset : offset + limit]
    assert all(0 < piece.num_rows <= batch for piece in batches)
    kept = [row for row in expected if row % 3 == 1]
    filtered = ours.scanner(columns=["id"], order_by=keys, limit=limit, offset=offset, filter="id % 3 = 1")
    assert filtered.to_table()["id"].to_pylist() == kept[offset : offset + limit]


@pytest.mark.parametrize("limit", [None, 3, 700, 4000])
@pytest.mark.parametrize("shape", ["up", "down", "mixed", "same"])
def test_many_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str, limit: int | None) -> None:
    """The best rows of each window are kept, for rows in any order, and results of other windows are used."""
    monkeypatch.setattr(ordering, "_SPARE_ROWS", 100)
    rows = 5000
    keys = {"up": np.arange(rows), "down": -np.arange(rows), "same": np.zeros(rows, np.int64)}.get(shape)
    keys = np.random.default_rng(3).integers(0, 900, rows) if keys is None else keys
    words = [f"row {row}" for row in range(rows)]
    table = pa.table({"k": keys, "w": words, "row": np.arange(rows)})
    dataset = lance_dataset.write_dataset(table, str(tmp_path / "d"), max_rows_per_file=999)
    dataset.delete("row % 10 = 7")
    alive = table.filter(pa.array([row % 10 != 7 for row in range(rows)]))
    order = np.argsort(alive["k"].to_numpy(), kind="stable")
    expected = alive.take(order).slice(2, limit)
    found = dataset.scanner(order_by=["k"], limit=limit, offset=2, batch_size=64).to_table()
    assert found.equals(expected)
    assert (
        dataset.scanner(columns=["w"], order_by=["k"], limit=limit, offset=2).to_table().equals(expected.select(["w"]))
    )


def test_computed_system_and_nested_outputs(stored) -> None:
    ours, _, table = stored
    columns = {"n": "id * 2", "s": "st", "c": "codes", "at": "_rowaddr"}
    found = ours.scanner(columns=columns, order_by=[ColumnOrdering("id", False)]).to_table()
    assert found["n"].to_pylist() == [2 * row for row in reversed(range(ROWS))]
    assert found["s"].to_pylist() == table["st"].to_pylist()[::-1]
    assert found["c"].to_pylist() == table["codes"].to_pylist()[::-1]
    assert found.slice(0, 5).equals(
        ours.scanner(columns=columns, order_by=[ColumnOrdering("id", False)], limit=5).to_table()
    )


def test_nothing_to_sort(stored, tmp_path: Path) -> None:
    ours, _, table = stored
    for options in ({"limit": 0}, {"filter": "id < 0"}, {"filter": "id < 0", "limit": 3}, {"limit": 3, "offset": 99}):
        found = ours.scanner(order_by=["text"], **options).to_table()
        assert found.num_rows == 0
        assert found.schema.names == table.schema.names
    assert list(ours.scanner(order_by=["text"], filter="id < 0").to_batches()) == []
    empty = lance_dataset.write_dataset(table.slice(0, 0), str(tmp_path / "empty"))
    assert empty.scanner(order_by=["st.a", "f64"]).to_table().num_rows == 0
    assert ours.scanner(columns=[], with_row_id=True, order_by=["id"], limit=2).to_table().num_rows == 2


def test_deleted_rows_too(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"k": [3, 1, 2, 0]}), str(tmp_path / "d"))
    dataset.delete("k = 2")
    options = {"with_row_id": True, "include_deleted_rows": True, "order_by": ["k"]}
    found = dataset.scanner(**options).to_table()
    assert found.to_pydict() == {"k": [0, 1, 2, 3], "_rowid": [3, 1, None, 0]}
    assert dataset.scanner(**options, limit=3).to_table().equals(found.slice(0, 3))


def test_sortable_arrays() -> None:
    numbers = pa.array([1.0, -0.0, 0.0, NAN, -NAN, -INF, INF, None, -2.5])
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        keys = sortable(numbers.cast(kind))
        assert pa.types.is_integer(keys.type)
        order = sort_indices([keys], [ordering_of()])
        assert order.tolist() == [4, 5, 8, 1, 2, 0, 6, 3, 7]
        assert sort_indices([sortable(numbers.cast(kind).slice(3, 3))], [ordering_of()]).tolist() == [1, 2, 0]
    decimals = pa.array([Decimal("-1.5"), None, Decimal("9999999999999999.99")], pa.decimal128(18, 2))
    assert sortable(decimals).to_pylist() == [-150, None, 999999999999999999]
    assert sortable(decimals.slice(2)).to_pylist() == [999999999999999999]
    struct = pa.array([{"a": 2}, None, {"a": None}, {"a": 1}])
    assert sort_indices([struct], [ordering_of()]).tolist() == [3, 0, 2, 1]
    assert sort_indices([struct], [ordering_of(nulls_first=True)]).tolist() == [1, 2, 3, 0]
    for kind in (pa.list_(pa.int32()), pa.struct([("x", pa.list_(pa.int8()))]), pa.month_day_nano_interval()):
        with pytest.raises(UnsupportedError, match="no order"):
            check_sortable(kind, "c")


def ordering_of(**options: bool) -> Ordering:
    return Ordering("x", **options)
