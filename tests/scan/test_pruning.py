"""Tests of statistics: they never exclude a matching row or an error, and exclude all rows they can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.grammar.filters import COMPARE, INTEGERS, Grammar

import lance_dataset as ours
from lance_dataset.expr.compiled import Filter, compile_filter
from lance_dataset.file.column import NullColumn
from lance_dataset.file.zones import Zones
from lance_dataset.scan import windows
from lance_dataset.scan.pruning.prune import Pruner, may_match
from lance_dataset.scan.row_ranges import RowRanges

NAN = float("nan")
NESTED = [("st", "x"), ("st", "y-z"), ("st", "in", "w")]
DATA_ERRORS = (pa.ArrowException, ArithmeticError, ValueError)


def values_of(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    array = batch.column(path[0])
    return pc.struct_field(array, list(path[1:])) if path[1:] else array


def true_zones(array: pa.Array, starts: Sequence[int]) -> Zones:
    """Return zones with the minimum and maximum of the values."""
    floating = pa.types.is_floating(array.type)
    is_nan = pc.is_nan(array).fill_null(False) if floating else pa.array(np.zeros(len(array), bool))
    valid = pc.is_valid(array)
    order = np.asarray(pc.array_sort_indices(array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array))
    order = order[np.asarray(pc.and_not(valid, is_nan))[order]]
    lows: list[int | None] = []
    highs: list[int | None] = []
    for start, stop in pairwise(starts):
        inside = order[(order >= start) & (order < stop)].tolist()
        lows.append(inside[0] if inside else None)
        highs.append(inside[-1] if inside else None)
    flags = [
        np.array([bool(pc.any(flag.slice(a, b - a)).as_py()) for a, b in pairwise(starts)])
        for flag in (pc.invert(valid), valid, is_nan)
    ]
    bounds = [array.take(pa.array(places, pa.int64())) for places in (lows, highs)]
    return Zones(np.array(starts, np.int64), *bounds, *flags)


def loosened(zones: Zones, drop: Sequence[bool], cut: int) -> Zones:
    """Return weaker zones: some bounds unknown, texts truncated with raised upper bounds, more nulls."""
    hidden = pa.array([drop[place % len(drop)] for place in range(len(zones))])
    low, high = zones.minimum, zones.maximum
    if pa.types.is_string(low.type) or pa.types.is_large_string(low.type):
        shorter = [text and text[:cut] + "\U0010ffff" * (len(text) > cut) for text in high.to_pylist()]
        low, high = pc.utf8_slice_codeunits(low, 0, cut), pa.array(shorter, high.type)
    nothing = pa.scalar(None, low.type)
    low, high = pc.if_else(hidden, nothing, low), pc.if_else(pc.invert(hidden), high, nothing)
    return replace(zones, minimum=low, maximum=high, may_be_null=zones.may_be_null | np.asarray(hidden))


def zones_of_all(batch: pa.RecordBatch, starts: Sequence[int]) -> dict[tuple[str, ...], Zones]:
    paths = [(field.name,) for field in batch.schema if not pa.types.is_nested(field.type) and field.name != "fsb"]
    nested = NESTED if "st" in batch.schema.names else []
    return {path: true_zones(values_of(batch, path), starts) for path in paths + nested}


def wrongly_excluded(text: str, batch: pa.RecordBatch, zones: dict[tuple[str, ...], Zones]) -> list[tuple[int, int]]:
    compiled = compile_filter(text, batch.schema)
    assert compiled is not None
    assert compiled.tree is not None
    bounds, match = may_match(compiled.tree, zones, batch.num_rows)
    ranges = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), match.tolist(), strict=True))
    return [(start, stop) for start, stop, matches in ranges if not matches and keeps(compiled, batch, start, stop)]


def keeps(compiled: Filter, batch: pa.RecordBatch, start: int, stop: int) -> bool:
    """Return True if the filter keeps one of the rows or fails."""
    try:
        return bool(pc.any(compiled.mask(batch.slice(start, stop - start))).as_py())
    except DATA_ERRORS:
        return True


class AnyFilter(Grammar):
    """Filters with conversions and computations, some of which fail."""

    def predicate(self) -> str:
        return self.pick(super().predicate, super().predicate, self.conversion, self.failing, self.member)()

    def conversion(self) -> str:
        source = self.pick(*INTEGERS, "f", "f4", "dec", "b", "d", "ts", "tms", "s", "st.x")
        target = self.pick(
            *("TINYINT", "INT", "BIGINT", "INT UNSIGNED", "FLOAT", "DOUBLE", "DECIMAL(12,1)", "DECIMAL(4,2)"),
            *("TIMESTAMP", "DATE", "STRING", "BOOLEAN"),
        )
        function = self.pick("CAST", "TRY_CAST")
        value = {"STRING": "'1'", "BOOLEAN": "true", "DATE": "date '2020-02-29'"}.get(target, "1.5")
        value = "timestamp '2020-02-29 01:02:03'" if target == "TIMESTAMP" else value
        test = self.pick(f"{self.pick(*COMPARE)} CAST({value} AS {target})", "IS NULL", "IS NOT NULL")
        return f"{function}({source} AS {target}) {test}"

    def failing(self) -> str:
        return self.pick(
            f"{self.pick('i', 'big')} / {self.pick('i8', 'u8', '3')} > 1", "i % 2 = 1", "-i8 < 3", "f / 0 > 1"
        )

    def member(self) -> str:
        column = self.pick("i", "u8", "f", "s", "dec", "d")
        values = {
            "s": ["'a'", "''", "'A'", "'abc'", "'b'", "'z'", "'héllo'"],
            "d": ["date '2020-02-29'", "date '2024-01-01'"],
            "f": ["0.0", "-0.0", "1.5", "2.5", "99", "CAST('NaN' AS DOUBLE)"],
            "dec": ["1.50", "0.05", "0.09"],
        }.get(column, [str(number) for number in range(12)])
        count = self.random.randint(1, 14)
        items = [self.random.choice([*values, "NULL"] if self.random.random() < 0.1 else values) for _ in range(count)]
        return f"{column} {self.pick('', 'NOT ')}IN ({', '.join(items)})"


CUTS = st.lists(st.integers(0, 48), max_size=20).map(lambda cuts: [0, *sorted(cuts), 48])


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    depth=st.integers(0, 3),
    starts=CUTS,
    drop=st.lists(st.booleans(), min_size=1),
    cut=st.integers(0, 3),
)
def test_generated_filters_lose_nothing(batch, seed, depth, starts, drop, cut):
    zones = {path: loosened(known, drop, cut) for path, known in zones_of_all(batch, starts).items()}
    text = AnyFilter(seed).filter(depth)
    try:
        compile_filter(text, batch.schema)
    except ValueError:
        return  # types that cannot be compared
    assert wrongly_excluded(text, batch, zones) == [], text


def test_hand_picked_filters_lose_nothing(batch):
    filters = (Path(__file__).parents[1] / "expr" / "filters.txt").read_text(encoding="utf-8").splitlines()
    columns = list(range(0, 49, 3))
    for starts in (columns, list(range(49)), [0, 48]):
        zones = zones_of_all(batch, starts)
        wrong = {text: found for text in filters if (found := wrongly_excluded(text, batch, zones))}
        assert wrong == {}


# -- what is excluded --------------------------------------------------------------------------------------------


def matching(text: str, batch: pa.RecordBatch, starts: Sequence[int]) -> list[bool]:
    compiled = compile_filter(text, batch.schema)
    assert compiled is not None
    assert compiled.tree is not None
    return may_match(compiled.tree, zones_of_all(batch, starts), batch.num_rows)[1].tolist()


@pytest.mark.parametrize(
    "text",
    [
        *("i > 2", "2 >= i", "i = 5", "i != 5", "i BETWEEN 2 AND 6", "i NOT BETWEEN 2 AND 6", "id IN (3, 9, 40)"),
        *("i NOT IN (1, 2)", "i IN (1, NULL)", "i NOT IN (1, NULL)", "u64 > 9223372036854775807", "i8 = i16"),
        *("f > 0", "f <= 0", "f = 0.0", "f >= CAST('NaN' AS DOUBLE)", "f4 IN (-0.0, 3)", "f = f4"),
        *("b", "NOT b", "b = true", "b IS NOT TRUE", "b IS FALSE", "b AND b2", "b OR b2", "b IS NULL", "b != b2"),
        *("s = 'a'", "s < 'b'", "s LIKE 'a%'", "s NOT LIKE 'a%'", "starts_with(s, 'h')", "s LIKE 'A'", "ls > 'b'"),
        *("s IN ('a', 'A', 'abc')", "bin >= X'61'", "dec = 0.05", "dec BETWEEN 0.05 AND 0.07", "dec > 1"),
        *("d = date '2020-02-29'", "ts < timestamp '2020-02-29 01:02:03'", "d < timestamp '2000-01-01 00:00:00'"),
        *("st.x = 1", "st.`in`.w > 2", "st.`y-z` IS NULL", "i IS NULL", "i IS NOT NULL", "(i > 2) IS NULL"),
        *("i IS DISTINCT FROM 5", "i IS NOT DISTINCT FROM NULL", "i IS NOT DISTINCT FROM i8", "(i > 2) = (i8 > 2)"),
        *("NOT (i > 2 OR s = 'a')", "i > 2 AND s IS NULL", "(i > 2 AND s > 'b') IS NOT FALSE", "i > 2 = true"),
        *("CAST(i AS BIGINT) = 5", "CAST(i8 AS DOUBLE) > 2.5", "TRY_CAST(i AS TINYINT) IS NULL"),
        *("CAST(dec AS INT) = 1", "CAST(f4 AS DOUBLE) > 1", "CAST(b AS INT) = 1", "CAST(d AS TIMESTAMP) IS NULL"),
    ],
)
def test_zones_of_one_row_say_all(text, batch):
    # not zones with NaN, where other values may be too
    nan = pc.or_(*(pc.is_nan(batch[name]).fill_null(False) for name in ("f", "f4")))
    rows = batch.filter(pc.invert(nan))
    assert matching(text, rows, range(rows.num_rows + 1)) == compile_filter(text, rows.schema).mask(rows).to_pylist()


ZONES = pa.RecordBatch.from_pydict(
    {
        "n": pa.array([1, 5, 10, 15, None, 20, None, None], pa.int64()),
        "s": ["aa", "ab", "b", "ba", "c", None, "ca", "cb"],
        "f": [1.0, NAN, 2.0, 3.0, NAN, NAN, -0.0, 0.0],
        "b": [True, True, False, False, True, False, None, True],
        "o": pa.array([0, 0, 1, 1, 2, 2, 3, 3], pa.int64()),
    }
)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("n < 5", "1000"),
        ("n <= 5", "1000"),
        ("5 > n", "1000"),
        ("n = 7", "0000"),
        ("n = 12", "0100"),
        ("n = 5 + 15", "0010"),
        ("n != 20", "1100"),
        ("NOT n = 20", "1100"),
        ("n IN (2, 3, 20)", "1010"),
        ("n IN (-1, 6, 7, 8, 9, 16, 17, 18, 19, 21)", "0000"),
        ("n IN (-1, 6, 7, 8, 9, 12, 17, 18, 19, 20)", "0110"),
        ("n NOT IN (20, 21, 22, 23, 24, 25, 26, 27, 28)", "1100"),
        ("n NOT IN (1, NULL)", "0000"),
        ("(n IN (1, NULL)) IS NULL", "1111"),
        ("(o IN (0, NULL)) IS NULL", "0111"),
        ("(o NOT IN (0, NULL)) IS NULL", "0111"),
        ("(n > 9 AND o > 0) IS NULL", "0011"),
        ("(o > 0 AND n > 9) IS NULL", "0011"),
        ("(o > 9 OR n > 9) IS NULL", "0011"),
        ("n BETWEEN 6 AND 9", "0000"),
        ("n IS NULL", "0011"),
        ("n IS NOT NULL", "1110"),
        ("(n > 0) IS NULL", "0011"),
        ("(n > 0) IS NOT TRUE", "0011"),
        ("(n > 9) IS TRUE", "0110"),
        ("n IS DISTINCT FROM 20", "1111"),
        ("n IS NOT DISTINCT FROM NULL", "0011"),
        ("n = o", "0000"),
        ("n < o", "0000"),
        ("n > 9 AND o < 2", "0100"),
        ("n > 100 OR o = 3", "0001"),
        ("NOT (n > 9 OR o < 1)", "0000"),
        ("n > 9 AND length(s) > 9", "0110"),
        ("s LIKE 'a%'", "1000"),
        ("s LIKE 'a_'", "1000"),
        ("s LIKE 'ca'", "0001"),
        ("s NOT LIKE 'a%'", "0111"),
        ("s NOT LIKE 'a_%'", "1111"),
        (r"s LIKE 'a\_%'", "0000"),
        (r"s LIKE '\b%'", "0100"),
        ("s ILIKE 'A%'", "1111"),
        ("starts_with(s, 'b')", "0100"),
        ("starts_with(upper(s), 'b')", "1111"),
        ("s > 'bb'", "0011"),
        ("f < 1", "0011"),
        ("f > 3", "1010"),
        ("f = 0.0", "0011"),
        ("f < 0.0", "0010"),
        ("f >= CAST('NaN' AS DOUBLE)", "1010"),
        ("f < CAST('NaN' AS DOUBLE)", "1111"),
        ("f IN (2.5, CAST('NaN' AS DOUBLE))", "1110"),
        ("b", "1011"),
        ("NOT b", "0110"),
        ("b = false", "0110"),
        ("b IS NULL", "0001"),
        ("CAST(n AS DECIMAL(20, 1)) < 5", "1000"),
        ("CAST(n AS DOUBLE) < 5", "1000"),
        ("CAST(n AS TINYINT) < 5", "1000"),
        ("TRY_CAST(n AS TINYINT) IS NULL", "0011"),
        ("n + 1 = 2 AND o = 3", "0001"),
        ("n / 2 = 2 AND o = 3", "0001"),
        ("true", "1111"),
        ("false", "0000"),
    ],
)
def test_excluded_zones(text, matches, batch):
    found = matching(text, ZONES, [0, 2, 4, 6, 8])
    assert "".join("01"[match] for match in found) == matches
    assert wrongly_excluded(text, ZONES, zones_of_all(ZONES, [0, 2, 4, 6, 8])) == []


@pytest.mark.parametrize(
    "text",
    [
        "o = 1 AND 10 / n > 1",
        "o = 1 AND n % o = 1",
        "o = 1 AND CAST(s AS INT) = 1",
        "o = 1 AND repeat(s, n) = 'a'",
        "o = 1 OR CAST(s AS INT) = 1",
        "CAST(s AS INT) = 1",
        "length(s) = 1",
        "true",
        "_rowid = 3 AND length(s) = 1 AND CAST(s AS INT) = 1",
    ],
)
def test_filters_that_may_fail_or_have_nothing_to_go_by_are_not_pruned(text):
    schema = ZONES.schema.append(pa.field("_rowid", pa.uint64()))
    assert Pruner.of(compile_filter(text, schema)) is None
    assert Pruner.of(None) is None


def test_pyarrow_expressions_are_pruned_like_text():
    pruner, same = (Pruner.of(compile_filter(filter, ZONES.schema)) for filter in (pc.field("o") == 1, "o = 1"))
    assert pruner is not None
    assert same is not None
    assert pruner.paths == same.paths


def test_a_zone_in_which_a_cast_fails_is_read():
    column = pa.array([1, 2, 300, 4, 5, 1000], pa.int64())
    batch = pa.RecordBatch.from_pydict({"n": column, "o": pa.array([1, 1, 1, 2, 2, 2])})
    compiled = compile_filter("o = 5 AND CAST(n AS TINYINT) = 7", batch.schema)
    _, match = may_match(compiled.tree, zones_of_all(batch, [0, 2, 3, 5, 6]), 6)
    assert match.tolist() == [False, True, False, True]


# -- zones not to be believed ------------------------------------------------------------------------------------


def test_zones_that_contradict_themselves_say_nothing():
    truth = true_zones(pa.array([1.0, 2.0, 3.0, 4.0]), [0, 2, 4])
    tree = compile_filter("f < 0", pa.schema([("f", pa.float64())])).tree

    def excluded(zones: Zones, num_rows: int = 4) -> bool:
        bounds, match = may_match(tree, {("f",): zones}, num_rows)
        assert (bounds[0], bounds[-1]) == (0, num_rows)
        return not match.any()

    assert excluded(truth)
    assert not excluded(replace(truth, minimum=pa.array([9.0, 9.0])))
    assert not excluded(replace(truth, minimum=pa.array([NAN, 3.0])))
    assert not excluded(replace(truth, minimum=pa.array([None, 3.0])))
    assert not excluded(replace(truth, minimum=pa.array([1, 3]), maximum=pa.array([2, 4])))
    assert not excluded(replace(truth, minimum=pa.array([1, 3])))
    assert not excluded(replace(truth, maximum=pa.array([2.0])))
    assert not excluded(replace(truth, may_be_nan=np.zeros(1, bool)))
    assert not excluded(replace(truth, starts=np.array([0, 2, 3])))
    assert not excluded(replace(truth, starts=np.array([0, 5, 4])))
    assert not excluded(truth, num_rows=5)


def test_zones_of_several_columns_are_cut_to_common_ranges():
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1, 1, 2, 2, 3, 3]), "b": pa.array([1, 2, 2, 2, 2, 2])})
    zones = {("a",): true_zones(batch["a"], [0, 0, 2, 4, 6]), ("b",): true_zones(batch["b"], [0, 1, 6, 6])}
    bounds, match = may_match(compile_filter("a < 3 AND b = 2", batch.schema).tree, zones, 6)
    assert bounds.tolist() == [0, 1, 2, 4, 6]
    assert match.tolist() == [False, True, True, False]


@given(
    counts=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12),
    gap=st.integers(0, 6),
    window=st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_ranges(counts, gap, window):
    bounds = np.concatenate([[0], np.cumsum([count for count, _ in counts])]).astype(np.int64)
    chosen = np.array([flag for _, flag in counts])
    ranges = RowRanges.of(bounds, chosen, gap)
    wanted = np.repeat(chosen, np.diff(bounds))
    found = np.zeros(len(wanted), bool)
    for start, stop in zip(ranges.starts, ranges.stops, strict=True):
        assert start < stop
        assert wanted[start]
        assert wanted[stop - 1]
        assert not found[start:stop].any()
        found[start:stop] = True
    assert found[wanted].all()
    assert all(b - a >= max(gap, 1) for a, b in zip(ranges.stops[:-1], ranges.starts[1:], strict=True))
    if gap <= 1:
        assert (found == wanted).all()
    start, stop = sorted(window)
    inside = [row for a, b in ranges.within(start, stop) for row in range(a, b)]
    assert inside == [row for row in np.flatnonzero(found).tolist() if start <= row < stop]
    assert all(a < b for a, b in ranges.within(start, stop))


# -- scans -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def legacy(table, tmp_path_factory) -> ours.LanceDataset:
    """Write the table in legacy files with statistics for every 3 rows, and delete some rows."""
    path = str(tmp_path_factory.mktemp("prune") / "legacy.lance")
    lance.write_dataset(table, path, data_storage_version="legacy", max_rows_per_group=3, max_rows_per_file=21)
    lance.dataset(path).delete("id IN (4, 5, 20, 21, 22, 40)")
    return ours.dataset(path)


def scanned(dataset: ours.LanceDataset, **options: object) -> list[pa.RecordBatch] | str:
    try:
        return list(dataset.scanner(columns=["id", "s", "u64", "b"], **options).to_batches())
    except DATA_ERRORS as error:
        return f"{type(error).__name__}: {error}"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    depth=st.integers(0, 3),
    gap=st.sampled_from([0, 2000, 1 << 20]),
    size=st.integers(1, 30),
)
def test_scans_are_the_same_with_and_without_statistics(legacy, monkeypatch, seed, depth, gap, size):
    monkeypatch.setattr(windows, "_GAP_BYTES", gap)
    text = AnyFilter(seed).filter(depth)
    try:
        compile_filter(text, legacy.schema)
    except ValueError:
        return  # types that cannot be compared
    plain = {"filter": text, "batch_size": size, "with_row_id": True, "use_stats": False}
    for more in ({}, {"limit": 3, "offset": 2}, {"include_deleted_rows": True}):
        expected = scanned(legacy, **plain, **more)
        assert scanned(legacy, **{**plain, **more, "use_stats": True}) == expected, text
        if not more and not isinstance(expected, str):
            assert legacy.count_rows(filter=text) == sum(batch.num_rows for batch in expected)


def test_computed_and_nested_columns_of_pruned_scans(legacy, table, monkeypatch):
    monkeypatch.setattr(windows, "_GAP_BYTES", 0)
    columns = {"n": "id * 2", "x": "st.x", "s": "s", "li": "li", "at": "_rowaddr"}
    text = "id IN (1, 2, 19, 24, 30, 31, 47)"
    found = legacy.to_table(columns=columns, filter=text)
    rows = [1, 2, 19, 24, 30, 31, 47]
    assert found == legacy.scanner(columns=columns, filter=text, use_stats=False).to_table()
    assert found["n"].to_pylist() == [2 * row for row in rows]
    assert found["at"].to_pylist() == [(row // 21 << 32) + row % 21 for row in rows]
    assert found["s"].to_pylist() == [table["s"][row].as_py() or None for row in rows]


def test_columns_that_no_file_has() -> None:
    """The zones of a column that no file has show that it is null, so a filter need not read it."""
    column = NullColumn(pa.struct([("a", pa.int32())]), 5)
    for path, kind in (((), column.arrow_type), (("a",), pa.int32())):
        zones = column.zones(path)
        assert zones.minimum.type == kind
        assert zones.starts.tolist() == [0, 5]
        assert (zones.may_be_null.all(), zones.may_be_valid.any(), zones.may_be_nan.any()) == (True, False, False)
