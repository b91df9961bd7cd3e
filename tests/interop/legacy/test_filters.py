"""Tests of statistics of legacy files: they agree with scans, and filters use them."""

from __future__ import annotations

import datetime as dt
import random
import shutil
import warnings
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import lance as reference
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset as ours
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.reader import open_metadata
from lance_dataset.file.v0_1.read.statistics import zones_from_statistics
from lance_dataset.file.zones import Zones
from lance_dataset.io.resolve import resolve
from lance_dataset.types.schema import Field

NAN, INF = float("nan"), float("inf")
ROWS = 300
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
DAY = dt.date(2020, 1, 1)


class Rows:
    """Increasing values, so that batches differ, with some values that are difficult for statistics."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def column(self, arrow: pa.DataType) -> pa.Array:
        nulls = self.random.choice([0, 0, 0.05, 0.5])
        emptied = range(0)
        if self.random.random() < 0.3:
            start = self.random.randrange(ROWS)
            emptied = range(start, start + self.random.randint(10, 80))
        values = [self.value(arrow, row) for row in range(ROWS)]
        kept = [None if row in emptied or self.random.random() < nulls else value for row, value in enumerate(values)]
        return pa.array(kept, arrow)

    def value(self, arrow: pa.DataType, row: int) -> object:
        special = self.random.random() < 0.02
        climbing = row + self.random.randint(-4, 4)
        if pa.types.is_boolean(arrow):
            return special != (row > ROWS // 2)
        if pa.types.is_integer(arrow):
            top = 2 ** (arrow.bit_width - pa.types.is_signed_integer(arrow)) - 1
            low = -top - 1 if pa.types.is_signed_integer(arrow) else 0
            return self.random.choice([low, top, 0]) if special else max(low, min(climbing // 3, top))
        if pa.types.is_floating(arrow):
            return self.random.choice([NAN, INF, -INF, -0.0, 0.0]) if special else climbing / 8
        if pa.types.is_decimal(arrow):
            return Decimal(climbing).scaleb(-2)
        if pa.types.is_date(arrow):
            return DAY + dt.timedelta(days=climbing - 20)
        return self.text(arrow, special, climbing)

    def text(self, arrow: pa.DataType, special: bool, climbing: int) -> object:
        long = self.random.choice(["x" * 80, "é" * 40, "\U0010ffff" * 20, "\x7f" * 70])
        text = self.random.choice(["", long, long[:61], long[:64]]) if special else f"{climbing:04d}"
        text += long[: self.random.randint(0, 70)] if self.random.random() < 0.1 else ""
        if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
            return text
        return b"\xff" * 66 if special and not text else text.encode()

    def table(self) -> pa.Table:
        types = [
            *INTEGERS,
            pa.float32(),
            pa.float64(),
            pa.bool_(),
            pa.date32(),
            pa.date64(),
            pa.decimal128(12, 2),
            *TEXTS,
        ]
        columns = {str(arrow).partition("[")[0].partition("(")[0]: self.column(arrow) for arrow in types}
        fields = [pa.field(name, column.type) for name, column in columns.items()]
        arrays = list(columns.values())
        for name, arrow in (("must_text", pa.string()), ("must_int", pa.int32()), ("must_float", pa.float32())):
            arrays.append(pa.array([self.value(arrow, row) for row in range(ROWS)], arrow))
            fields.append(pa.field(name, arrow, nullable=False))
        mask = pa.array([self.random.random() < 0.2 for _ in range(ROWS)])
        inner = pa.StructArray.from_arrays([columns["double"], columns["string"]], names=["d", "s"], mask=mask)
        arrays.append(pa.StructArray.from_arrays([columns["int32"], inner], names=["i", "in"]))
        fields.append(pa.field("st", arrays[-1].type))
        arrays += [
            pa.array(range(ROWS), pa.int64()),
            pa.nulls(ROWS, pa.int16()),
            pa.array([[row] for row in range(ROWS)]),
        ]
        fields += [pa.field("id", pa.int64()), pa.field("lost", pa.int16()), pa.field("list", arrays[-1].type)]
        return pa.table(arrays, schema=pa.schema(fields))


PATHS = [("st", "i"), ("st", "in", "d"), ("st", "in", "s")]


def written(path: Path, seed: int, writer: ModuleType = reference) -> tuple[ours.LanceDataset, reference.LanceDataset]:
    table, chance = Rows(seed).table(), random.Random(seed)
    group, rows = chance.choice([7, 20, 33, 1024]), chance.choice([100, 1 << 20])
    options = {"data_storage_version": "legacy", "max_rows_per_group": group, "max_rows_per_file": rows}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of nulls that will be lost
        writer.write_dataset(table, str(path), **options)
    if chance.random() < 0.5:
        reference.dataset(str(path)).delete("id % 7 = 3 OR id BETWEEN 50 AND 72")
    return ours.dataset(str(path)), reference.dataset(str(path))


def zones_and_values(dataset: ours.LanceDataset) -> list[tuple[str, Zones | None, pa.Array]]:
    found = []
    for fragment in dataset.snapshot.reader.fragments:
        for field in dataset.snapshot.manifest.schema.fields:
            reader = fragment.column(field)
            whole = reader.read(0, reader.num_rows)
            for path in [path for path in PATHS if path[0] == field.name] or [(field.name,)]:
                values = pc.struct_field(whole, list(path[1:])) if path[1:] else whole
                found.append((".".join(path), reader.zones(path[1:]), values))
    return found


def assert_true(zones: Zones, values: pa.Array) -> int:
    """Check that the zones are true for the values, and return the number of known bounds."""
    assert zones.starts[-1] == len(values)
    known = 0
    for zone, start in enumerate(zones.starts[:-1].tolist()):
        part = values.slice(start, zones.starts[zone + 1] - start)
        assert zones.may_be_null[zone] or part.null_count == 0
        assert zones.may_be_valid[zone] or part.null_count == len(part)
        if pa.types.is_floating(part.type):
            nan = pc.is_nan(part)
            assert zones.may_be_nan[zone] or not pc.any(nan).as_py()
            part = part.filter(pc.invert(nan))
        part = part.drop_null()
        for bound, holds in ((zones.minimum[zone], pc.less_equal), (zones.maximum[zone], pc.greater_equal)):
            known += bound.is_valid
            assert not bound.is_valid or len(part) == 0 or pc.all(holds(bound, part)).as_py()
    return known


@pytest.mark.parametrize("writer", [reference, ours], ids=["reference", "ours"])
@pytest.mark.parametrize("seed", range(6))
def test_zones_are_true(seed, writer, tmp_path):
    dataset, _ = written(tmp_path / "t.lance", seed, writer)
    without, known, bounds = set(), 0, 0
    for name, zones, values in zones_and_values(dataset):
        if zones is None:
            without.add(name)
            continue
        known += assert_true(zones, values)
        bounds += 2 * len(zones)
    assert without == {"list"}
    assert known > 0.25 * bounds


def filters(seed: int) -> list[str]:
    chance = random.Random(seed)

    def compare(column: str, low: str, high: str) -> str:
        operator = chance.choice(["=", "!=", "<", "<=", ">", ">="])
        return chance.choice(
            [
                f"{column} {operator} {low}",
                f"{high} {operator} {column}",
                f"{column} BETWEEN {low} AND {high}",
                f"{column} NOT BETWEEN {low} AND {high}",
                f"{column} IN ({low}, {high})",
                f"{column} NOT IN ({low}, {high})",
                f"NOT ({column} {operator} {low})",
                f"{column} IS NULL",
                f"({column} {operator} {low}) IS NOT TRUE",
            ]
        )

    def leaf() -> str:
        low = chance.randint(0, ROWS // 3)
        high = low + chance.randint(0, 10)
        column = chance.choice([*map(str, INTEGERS[1:4]), "must_int", "st.i"])
        text = chance.choice(["string", "large_string", "must_text", "st.`in`.s"])
        return chance.choice(
            [
                compare(column, str(low), str(high)),
                compare(chance.choice(["double", "must_float", "st.`in`.d"]), f"{low / 2}", f"{high / 2}"),
                compare(text, f"'{3 * low:04d}'", f"'{3 * high:04d}z'"),
                f"{text} {chance.choice(['', 'NOT '])}LIKE '{low // 4:03d}%'",
                compare("binary", f"X'{3 * low:04d}'", f"X'{b'0200'.hex()}'"),
                compare("decimal128", *(f"CAST({number / 50:.2f} AS DECIMAL(12, 2))" for number in (low, high))),
                compare("date32", f"date '{DAY + dt.timedelta(days=3 * low)}'", f"date '{DAY}'"),
                chance.choice(["bool", "NOT bool", "bool IS NOT FALSE"]),
            ]
        )

    return [
        chance.choice(["{}", "{}", "{} AND id > 100", "{} OR id = 77", "NOT ({})"]).format(leaf()) for _ in range(25)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_filters_return_what_the_reference_returns_without_statistics(seed, tmp_path):
    dataset, expected = written(tmp_path / "t.lance", seed)
    for text in filters(seed):
        rows = expected.scanner(filter=text, columns=["id"], use_stats=False).to_table()["id"].to_pylist()
        assert dataset.to_table(filter=text, columns=["id"])["id"].to_pylist() == rows, text
        assert dataset.scanner(filter=text, columns=["id"], use_stats=False).to_table()["id"].to_pylist() == rows, text
        assert dataset.count_rows(filter=text) == len(rows), text


@pytest.mark.parametrize("text", ["int32 < 40", "must_text >= '0200' AND double < 30", "id IN (1, 99, 100, 299)"])
def test_deletes(text, tmp_path):
    _, expected = written(tmp_path / "t.lance", 3)
    shutil.copytree(tmp_path / "t.lance", tmp_path / "copy.lance")
    ours.dataset(str(tmp_path / "copy.lance")).delete(text)
    kept = [
        row
        for row in expected.to_table(columns=["id"])["id"].to_pylist()
        if row not in expected.scanner(filter=text, columns=["id"], use_stats=False).to_table()["id"].to_pylist()
    ]
    assert reference.dataset(str(tmp_path / "copy.lance")).to_table(columns=["id"])["id"].to_pylist() == kept


def test_batches_that_cannot_match_are_not_read(tmp_path):
    path = tmp_path / "t.lance"
    table = pa.table({"s": [f"{row:05d}" for row in range(1000)], "n": pa.array(range(1000), pa.int64())})
    reference.write_dataset(table, str(path), data_storage_version="legacy", max_rows_per_group=100)
    (file,) = (path / "data").iterdir()
    store, place = resolve(str(file))
    positions, _ = open_metadata(store.open_input(place), (0, 1)).pages.cells(0)
    damaged = bytearray(file.read_bytes())
    for batch in (0, 1, 9):  # the offsets of the strings
        damaged[positions[batch] : positions[batch] + 808] = b"\xff" * 808
    file.write_bytes(damaged)
    dataset = ours.dataset(str(path))
    assert dataset.to_table(filter="s BETWEEN '00250' AND '00252'").to_pylist() == table.slice(250, 3).to_pylist()
    assert dataset.to_table(filter="n IN (899, 200) AND s > '1'").num_rows == 0
    assert dataset.count_rows(filter="n >= 200 AND n < 900 AND s LIKE '00%'") == 700
    for options in ({"filter": "s = '00250'", "use_stats": False}, {"filter": "s <= '00250'"}):
        with pytest.raises(CorruptFileError):
            dataset.scanner(**options).to_table()


def test_lost_nulls(tmp_path):
    """Filters use the values that scans return; those of the reference use the nulls that were lost."""
    path = str(tmp_path / "t.lance")
    table = pa.table(
        {"n": pa.array([None] * 4 + [1, None, 3, 4], pa.int32()), "s": [None, None, "", "", "a", None, "", "b"]}
    )
    reference.write_dataset(table, path, data_storage_version="legacy", max_rows_per_group=4)
    dataset = ours.dataset(path)
    assert dataset.to_table()["n"].to_pylist() == [0, 0, 0, 0, 1, 0, 3, 4]
    assert dataset.count_rows(filter="n IS NULL") == 0
    assert dataset.count_rows(filter="n = 0") == 5
    assert dataset.count_rows(filter="s IS NULL") == 6
    assert dataset.count_rows(filter="s = ''") == 0
    theirs = reference.dataset(path)
    assert theirs.to_table(filter="n IS NULL").num_rows == 4
    assert theirs.scanner(filter="n IS NULL", use_stats=False).to_table().num_rows == 0
    assert theirs.scanner(filter="n = 0", use_stats=False).to_table().num_rows == 5


# -- statistics as zones -----------------------------------------------------------------------------------------

OFFSETS = np.array([0, 10, 20, 30, 30], np.int64)


def zones(kind: str, null_count: list, low: list, high: list, *, nullable: bool = True, **more: object) -> Zones | None:
    field = Field("c", 0, kind, nullable)
    arrow = field.storage_type
    return zones_from_statistics(
        field, OFFSETS, pa.array(null_count, pa.int64()), pa.array(low, arrow), pa.array(high, arrow), **more
    )


def test_statistics_of_fixed_width():
    found = zones("int32", [0, 1, 0, 0], [1, 2, 3, -(2**31)], [5, 6, 7, 2**31 - 1])
    assert found.minimum.to_pylist() == [1, None, 3, -(2**31)]
    assert found.maximum.to_pylist() == [5, None, 7, 2**31 - 1]
    assert not found.may_be_null.any()
    assert found.may_be_valid.all()
    assert not found.may_be_nan.any()
    assert zones("double", [0] * 4, [1.0] * 4, [2.0] * 4).may_be_nan.all()
    overlong = zones("int32", [0] * 4, [1] * 4, [5] * 4, overlong=np.array([False, True, False, False]))
    assert overlong.minimum.to_pylist() == [1, None, 1, 1]


def test_statistics_of_text():
    found = zones("string", [0, 3, 10, 0], ["a", "b", None, None], ["c", None, None, None])
    # releases left bytes under nulls, which are read as values
    assert found.minimum.to_pylist() == ["a", None, None, None]
    assert found.may_be_null.tolist() == [False, True, True, True]
    assert found.may_be_valid.all()
    nothing = np.array([True, True, False, True])
    sure = zones("string", [0, 3, 10, 0], ["a", "b", None, None], ["c", None, None, None], have_bytes=nothing)
    assert sure.may_be_valid.tolist() == [True, True, False, True]
    empty = zones("string", [0, 0, 0, 0], ["", None, "a", "a"], ["c", "c", "c", "c"])
    assert empty.may_be_null.tolist() == [True, True, False, False]
    required = zones("binary", [0, 0, 4, 0], [b"", None, b"a", b"b"], [b"c"] * 4, nullable=False)
    assert not required.may_be_null.any()
    assert required.minimum.to_pylist() == [b"", None, None, b"b"]


def test_statistics_that_do_not_fit():
    assert zones("int32", [0] * 3, [1] * 4, [1] * 4) is None
    assert zones("int32", [0] * 4, [1] * 4, [1] * 5) is None
    odd = zones("string", [-1, 11, None, 0], ["a"] * 4, ["b"] * 4)
    assert odd.minimum.to_pylist() == [None, None, None, "a"]
    assert odd.may_be_null.tolist() == [True, True, True, False]
    assert odd.may_be_valid.all()
    field = Field("c", 0, "int32")
    counts, bounds = pa.array([0] * 4, pa.int64()), pa.array([1] * 4, pa.int64())
    assert zones_from_statistics(field, OFFSETS, counts, bounds, bounds) is None
    assert zones_from_statistics(field, OFFSETS, counts.cast(pa.int32()), bounds.cast(pa.int32()), bounds) is None
