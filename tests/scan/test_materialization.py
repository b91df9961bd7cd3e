"""Tests of early and late reads of columns, in ranges or row by row: the results are always the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.arrays.random_columns import Data, random_column

import lance_dataset
from lance_dataset.errors import UnsupportedError
from lance_dataset.read.concatenate import keep_rows
from lance_dataset.scan import filtering, strategy
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.scan import scan_table

ROWS = 3000
COLUMNS = ("id", "n", "f", "text", "flag", "list", "vec", "st", "codes", "gone")


def build() -> pa.Table:
    rng = np.random.default_rng(11)
    nulls = rng.random(ROWS) < 0.2
    ids = np.arange(ROWS)
    structs = pa.StructArray.from_arrays(
        [pa.array(rng.integers(0, 9, ROWS)), pa.array([f"in {i % 31}" for i in ids])], ["a", "b"], mask=pa.array(nulls)
    )
    lists = pa.array([None if i % 13 == 4 else list(range(i % 5)) for i in ids], pa.list_(pa.int32()))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(ROWS * 8).astype(np.float32)), 8)
    return pa.table(
        {
            "id": ids,
            "n": pa.array(rng.integers(0, 100, ROWS), mask=nulls),
            "f": rng.random(ROWS),
            "text": pa.array([f"the text of row {i}" * (i % 4) for i in ids], mask=rng.random(ROWS) < 0.1),
            "flag": rng.choice(["A", "N", "R"], ROWS),
            "list": lists,
            "vec": vectors,
            "st": structs,
            "codes": pa.array(rng.choice(["x", "yy", "zzz"], ROWS)).dictionary_encode(),
            "gone": pa.nulls(ROWS, pa.int16()),
        }
    )


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    table, uri = build(), str(tmp_path_factory.mktemp("late") / "d")
    dataset = lance_dataset.write_dataset(
        table, uri, max_rows_per_file=700, data_storage_version=request.param, max_page_bytes=4096
    )
    dataset.delete("id % 17 = 3 OR (id > 800 AND id < 1300)")
    alive = [row for row in range(ROWS) if row % 17 != 3 and not 800 < row < 1300]
    return dataset, table.take(alive)


@st.composite
def filters(draw: st.DrawFn) -> tuple[str, object]:
    """Draw a filter as text, and the same filter as a function of a row."""
    simple = {
        "n": lambda low: (f"n >= {low}", lambda row: row["n"] is not None and row["n"] >= low),
        "id": lambda low: (f"id % 100 < {low}", lambda row: row["id"] % 100 < low),
        "f": lambda low: (f"f < {low / 100}", lambda row: row["f"] < low / 100),
        "flag": lambda low: ("flag = 'A'", lambda row: row["flag"] == "A"),
        "text": lambda low: (f"text LIKE '%row {low}%'", lambda row: f"row {low}" in (row["text"] or "")),
        "st": lambda low: ("st.a IS NOT NULL", lambda row: row["st"] is not None),
        "codes": lambda low: ("codes != 'x'", lambda row: row["codes"] != "x"),
    }
    names = draw(st.lists(st.sampled_from(sorted(simple)), min_size=1, max_size=4))
    made = [simple[name](draw(st.sampled_from([0, 1, 5, 50, 95, 100]))) for name in names]
    glue = draw(st.sampled_from([" AND ", " AND ", " OR "]))
    tests = [test for _, test in made]
    whole = all if glue == " AND " else any
    return glue.join(f"({text})" for text, _ in made), lambda row: whole(test(row) for test in tests)


late_choices = st.one_of(st.none(), st.booleans(), st.lists(st.sampled_from(COLUMNS), max_size=4))


@settings(max_examples=25, deadline=None)
@given(filter=filters(), late=late_choices, names=st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True))
def test_the_same_for_every_choice(stored, filter, late, names) -> None:
    dataset, table = stored
    text, test = filter
    expected = table.filter(pa.array([test(row) for row in table.to_pylist()], pa.bool_())).select(names)
    options = {"columns": names, "filter": text, "late_materialization": late}
    assert dataset.to_table(**options).to_pylist() == expected.to_pylist()
    found = pa.Table.from_batches(dataset.to_batches(**options, batch_size=100), expected.schema)
    assert found.to_pylist() == expected.to_pylist()
    assert dataset.to_table(**options, limit=7, offset=3).to_pylist() == expected.slice(3, 7).to_pylist()
    assert dataset.count_rows(filter=text) == expected.num_rows


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("most", [-1.0, 2.0])
def test_however_rows_are_fetched(stored, monkeypatch: pytest.MonkeyPatch, takes: bool, most: float) -> None:
    """The cost model decides only how rows are fetched, never the result.

    Rows are taken one by one or in ranges throughout, and conditions see all rows or few.
    """
    dataset, table = stored
    monkeypatch.setattr(ColumnCosts, "prefers_take", lambda self, field, kept, width: takes)
    monkeypatch.setattr(filtering, "_MOST", most)
    expected = [row for row in table.to_pylist() if row["flag"] == "N" and row["f"] < 0.4 and row["id"] > 90]
    found = dataset.to_table(filter="flag = 'N' AND f < 0.4 AND id > 90")
    assert found.to_pylist() == expected
    computed = dataset.to_table(columns={"d": "id * 2", "b": "st.b"}, filter="flag = 'N' AND f < 0.4 AND id > 90")
    assert computed.to_pylist() == [{"d": 2 * row["id"], "b": row["st"] and row["st"]["b"]} for row in expected]
    whole = dataset.to_table(filter="flag = 'N' AND f < 0.4", include_deleted_rows=True, with_row_id=True)
    assert len([row for row in whole["_rowid"].to_pylist() if row is not None]) <= whole.num_rows


def plan_of(dataset: lance_dataset.LanceDataset, **options: object) -> strategy.ScanStrategy:
    return strategy.strategy(dataset.snapshot.reader, dataset.scanner(**options)._request)


def test_what_is_read_when(stored) -> None:
    dataset, _ = stored
    plan = plan_of(dataset, filter="n > 3", columns=["id", "n", "text"])
    assert (plan.early, plan.late) == (("n",), ("id", "text"))
    plan = plan_of(dataset, filter="n > 3", columns=["id", "n", "text"], late_materialization=False)
    assert (plan.early, plan.late) == (("n", "id", "text"), ())
    plan = plan_of(dataset, filter="n > 3", columns=["id", "n", "text"], late_materialization=["text"])
    assert (plan.early, plan.late) == (("n", "id"), ("text",))
    plan = plan_of(dataset, columns={"x": "id + 1", "y": "text"})
    assert (plan.early, plan.late, plan.steps) == (("id", "text"), (), ())
    plan = plan_of(dataset, order_by=["id"], limit=5, offset=2)
    assert plan.top == 7
    assert plan_of(dataset, filter="n > 3", limit=5).grows
    assert not plan_of(dataset, filter="n > 3").grows


def test_cheap_conditions_first(stored) -> None:
    dataset, _ = stored
    plan = plan_of(dataset, filter="text LIKE '%a%' AND n > 3 AND (n < 90 AND list IS NOT NULL)")
    assert plan.steps[0].columns == ("n",)
    assert set(plan.early) == {"text", "n", "list"}
    # expressions that may raise an error are computed for all rows
    for text in ("text LIKE '%a%' AND 10 / n > 3", "n > 3 AND CAST(text AS INT) = 1", "n > 3 OR text = ''"):
        assert len(plan_of(dataset, filter=text).steps) == 1


def test_conditions_behind_others_read_less(stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCE_CHECK_SCANS", raising=False)  # checks read everything
    dataset, _ = stored
    request = dataset.scanner(filter="id < 20 AND text LIKE '%row 1%'", columns=["f"])._request
    counted = {}
    for kept in ("id < 20", "id >= 0"):
        metrics = ScanMetrics()
        request = dataset.scanner(filter=f"{kept} AND text LIKE '%row 1%'", columns=["f"])._request
        scan_table(dataset.snapshot.reader, replace(request, metrics=metrics))
        assert metrics.node("scan").rows == ROWS
        counted[kept] = metrics.node("scan").bytes
    assert counted["id < 20"] < counted["id >= 0"] / 2


def test_costs_of_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = 20_000
    table = pa.table(
        {
            "number": rng.integers(0, 1 << 40, rows),
            "short": rng.choice(["A", "B"], rows),
            "long": [rng.bytes(150).hex() for _ in range(rows)],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(rows * 64).astype(np.float32)), 64),
        }
    )
    dataset = lance_dataset.write_dataset(table, str(tmp_path / "d"), data_storage_version="2.2")
    reader, schema = dataset.snapshot.reader, dataset.snapshot.manifest.schema
    costs = ColumnCosts.of(reader, dataset.scanner()._request)
    cost = {field.name: costs.cost(field) for field in schema.fields}
    assert cost["long"].decoded == pytest.approx(304, rel=0.1)
    assert cost["vec"].decoded == pytest.approx(256, rel=0.1)
    assert cost["short"].stored < 1 < cost["short"].decoded < 8
    assert cost["short"].read < cost["long"].read
    for each in cost.values():
        assert each.prefers_take(1, 100_000) or each.read == 0
        assert not each.prefers_take(100_000, 100_000)


def test_costs_that_types_tell(tmp_path: Path) -> None:
    """Taking is decided without opening a column of numbers only if every encoding has the same answer."""
    rng = np.random.default_rng(2)
    rows = 100_000
    encoded = {
        "flat": pa.array(rng.random(rows)),
        "packed": pa.array(rng.integers(0, 1000, rows, np.int32)),
        "runs": pa.array(np.repeat(np.arange(rows // 1000, dtype=np.int16), 1000)),
        "few": pa.array(rng.choice(rng.integers(0, 1 << 60, 20), rows)),
        "decimal": pa.array(rng.integers(0, 1 << 30, rows)).cast(pa.decimal128(38, 0)),
        "truth": pa.array(rng.random(rows) < 0.5),
        "text": pa.array(["a word"] * rows),
    }
    uri = str(tmp_path / "d")
    lance_dataset.write_dataset(pa.table(encoded), uri, data_storage_version="2.2")
    dataset = lance_dataset.dataset(uri)
    reader, schema = dataset.snapshot.reader, dataset.snapshot.manifest.schema
    costs = ColumnCosts.of(reader, dataset.scanner()._request)
    early = {field.name: [costs.prefers_take(field, kept, rows) for kept in (1, 100, 500)] for field in schema.fields}
    assert early["packed"] == [True, True, True]
    for field in schema.fields:
        for kept in (1, 100, 200, 300, 400, 500, 600, 700, 1000, 10_000, rows):
            assert costs.prefers_take(field, kept, rows) == costs.cost(field).prefers_take(kept, rows)


def test_late_columns_have_to_exist(stored) -> None:
    dataset, _ = stored
    with pytest.raises((ValueError, UnsupportedError)):
        dataset.to_table(filter="n > 3", late_materialization=["nope"])


@pytest.mark.parametrize("late", [None, True, False])
@pytest.mark.parametrize("takes", [True, False])
def test_fragments_of_a_window_without_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool | None, takes: bool
) -> None:
    """If only some fragments of a window have rows, places count from the first that has."""
    monkeypatch.setattr(ColumnCosts, "prefers_take", lambda self, field, kept, width: takes)
    table = pa.table({"a": [0, 0, 0, 1, 2, 1, 0, 0, 3, 1], "s": [f"row {row}" for row in range(10)]})
    dataset = lance_dataset.write_dataset(table, str(tmp_path / "d"), max_rows_per_file=3)
    numbers = table["a"].to_numpy()
    for text, keep in {
        "a = 1": numbers == 1,
        "a = 2": numbers == 2,
        "a > 0": numbers > 0,
        "a = 3": numbers == 3,
    }.items():
        found = dataset.to_table(filter=text, late_materialization=late)
        assert found.equals(table.filter(pa.array(keep)))
    dataset.delete("s = 'row 3'")
    assert dataset.to_table(filter="a = 1", columns=["s"])["s"].to_pylist() == ["row 5", "row 9"]


LISTS = (
    *(pa.list_(pa.int32()), pa.large_list(pa.float64()), pa.list_(pa.timestamp("us", "UTC")), pa.list_(pa.float16())),
    *(pa.list_(pa.field("x", pa.int8(), nullable=False)), pa.list_(pa.bool_()), pa.list_(pa.string())),
    *(pa.list_(pa.null()), pa.list_(pa.list_(pa.int8())), pa.map_(pa.int8(), pa.int8()), pa.list_(pa.int16(), 2)),
)


@pytest.mark.parametrize("kind", LISTS, ids=str)
@pytest.mark.parametrize("share", [0.3, 0.9, 1.0])
def test_lists_that_are_kept(kind: pa.DataType, share: float) -> None:
    """Slices of lists are kept, including null and empty ones, with and without null items."""
    for nulls, seed in ((0.0, 1), (0.3, 2)):
        array = random_column(kind, 200, Data(nulls=nulls), np.random.default_rng(seed)).slice(3, 180)
        rows = np.flatnonzero(np.random.default_rng(seed).random(180) < share)
        kept = pa.chunked_array(keep_rows([array.slice(0, 70), array.slice(70)], rows), kind)
        kept.validate(full=True)
        assert kept.equals(pa.chunked_array([array.take(pa.array(rows))]))
