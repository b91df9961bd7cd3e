"""Tests of the facts that the viewer and the command line share."""

from __future__ import annotations

import decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset as lance
from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.reports.changed_rows import changed_rows
from lance_dataset.reports.places import shown_uri
from lance_dataset.reports.references import parse_reference
from lance_dataset.reports.statistics import column_statistics
from lance_dataset.viewer.previews import preview, stream

N = 5000


def _columns() -> dict[str, pa.Array]:
    random = np.random.default_rng(3)
    whole = random.integers(-500, 500, N)
    missing = random.random(N) < 0.1
    days = pa.array(whole.astype("i4"), pa.int32()).cast(pa.date32())
    return {
        "int": pa.array(whole, mask=missing),
        "uint8": pa.array((whole % 200).astype("u1")),
        "big": pa.array(whole.astype("u8") + np.uint64(2**60)),
        "float": pa.array(np.where(random.random(N) < 0.1, np.nan, random.normal(size=N)), mask=missing),
        "half": pa.array(random.normal(size=N).astype("f2")),
        "infinite": pa.array([float("inf")] * N),
        "decimal": pa.array([decimal.Decimal(int(each)) / 4 for each in whole], pa.decimal128(10, 2)),
        "date": days,
        "moment": pa.array(whole.astype("i8") * 10**9, pa.timestamp("us", "UTC")),
        "nanos": pa.array(whole.astype("i8"), pa.timestamp("ns")),
        "time": pa.array(np.abs(whole).astype("i4"), pa.time32("s")),
        "duration": pa.array(whole.astype("i8"), pa.duration("ms")),
        "bool": pa.array(whole > 3, mask=missing),
        "text": pa.array([f"value {each % 9}" for each in whole], mask=missing),
        "codes": pa.array([f"code {each % 5}" for each in whole]).dictionary_encode(),
        "bytes": pa.array([bytes(int(each) % 30) for each in whole]),
        "list": pa.array([[1] * (int(each) % 4) for each in whole]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(random.normal(size=N * 4).astype("f4")), 4),
        "struct": pa.array([{"a": 1}] * N),
        "null": pa.nulls(N, pa.int32()),
    }


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    return lance.write_dataset(pa.table(_columns()), str(tmp_path_factory.mktemp("reports") / "x"))


@pytest.mark.parametrize("name", _columns())
@pytest.mark.parametrize("condition", [None, "int > 100", "false"])
def test_statistics(dataset: lance.LanceDataset, name: str, condition: str | None) -> None:
    values = dataset.to_table(columns=[name], filter=condition)[name]
    found = column_statistics(dataset, name, condition)
    assert (found.rows, found.read, found.nulls) == (len(values), len(values), values.null_count)
    counted = len(values) - values.null_count - (found.nans or 0)
    if name == "infinite":
        counted = 0
    if found.histogram:
        assert sum(each.count for each in found.histogram) == counted
    elif counted and name not in ("bool", "struct"):
        pytest.fail(f"no histogram of {name}")
    if found.distinct is not None:
        # Arrow counts different values of half precision as equal
        comparable = values.cast({"codes": pa.string(), "half": pa.float32()}.get(name, values.type))
        assert found.distinct == pc.count_distinct(comparable, "only_valid").as_py()


def test_extremes_and_frequent_values(dataset: lance.LanceDataset) -> None:
    numbers = dataset.to_table(columns=["int"])["int"]
    found = column_statistics(dataset, "int")
    assert found.minimum == str(pc.min(numbers).as_py())
    assert found.mean == pytest.approx(pc.mean(numbers).as_py())
    frequent = column_statistics(dataset, "text").frequent
    assert len(frequent) == 9
    assert sum(each.count for each in frequent) == N - dataset.count_rows("text is null")
    with pytest.raises(FieldNotFoundError, match="'nothing'"):
        column_statistics(dataset, "nothing")


def test_large_columns_are_sampled(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"t": [f"{i % 3}" for i in range(150_000)]}), str(tmp_path / "x"))
    found = column_statistics(made, "t")
    assert (found.rows, found.read, found.distinct) == (150_000, 100_000, 3)
    assert [each.count for each in found.frequent] == pytest.approx([33_333] * 3, rel=0.05)
    assert column_statistics(made, "t", "t != '1'").read == 100_000


@pytest.mark.parametrize("stable", [True, False])
def test_changed_rows(tmp_path: Path, stable: bool) -> None:
    table = pa.table({"id": range(100), "x": ["old"] * 100})
    made = lance.write_dataset(table, str(tmp_path / "x"), enable_stable_row_ids=stable)
    first = made.checkout_version(1)
    assert changed_rows(first, made)["deleted"]["count"] == 0
    made.delete("id < 60")
    made.update({"x": "'new'"}, where="id = 70")
    lance.write_dataset(pa.table({"id": [100, 101], "x": [None, "b"]}), made.uri, mode="append")
    found = changed_rows(first, lance.dataset(made.uri))
    moved = 0 if stable else 1
    assert found["deleted"]["count"] == 60 + moved
    assert found["inserted"]["count"] == 2 + moved
    assert [row[1:] for row in found["inserted"]["rows"]][-2:] == [["100", None], ["101", "b"]]
    assert len(found["deleted"]["rows"]) == 50
    if stable:
        assert [row[1:] for row in found["updated"]["rows"]] == [["70", "new"]]
    else:
        assert "place" in found["note"]


def test_references() -> None:
    assert [parse_reference(text) for text in ("7", "a", "b:7", "b:")] == [7, "a", ("b", 7), ("b", None)]
    with pytest.raises(InvalidInputError, match="after the colon"):
        parse_reference("b:c")


def test_addresses_have_no_secrets() -> None:
    assert shown_uri("s3://me:secret@bucket/table?sig=abc") == "s3://bucket/table"
    assert shown_uri("/folder/a?b@c") == "/folder/a?b@c"


def test_previews_of_all_types() -> None:
    others = {
        "map": pa.array([[("a", 1)], None] * 5, pa.map_(pa.string(), pa.int32())),
        "large_list": pa.array([[1, 2], None] * 5, pa.large_list(pa.int64())),
        "view": pa.array(["a\n\x1b[31m", None] * 5, pa.string_view()),
        "binary_view": pa.array([b"a", None] * 5, pa.binary_view()),
        "fixed": pa.array([b"abc", None] * 5, pa.binary(3)),
        "matrix": pa.array([[[1, 2], [3, 4]], None] * 5, pa.list_(pa.list_(pa.int32(), 2), 2)),
        "vector with null": pa.array([[1, None], None] * 5, pa.list_(pa.float16(), 2)),
        "empty vector": pa.array([[], None] * 5, pa.list_(pa.float32(), 0)),
        "int8 vector": pa.array([[1] * 100, None] * 5, pa.list_(pa.int8(), 100)),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16, None] * 5, pa.binary(16))),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None] * 5)),
        "codes": pa.array(["a", None] * 5).dictionary_encode(),
        "long": pa.array(["x" * 1000, None] * 5),
        "null": pa.nulls(10),
    }
    table = pa.table({**{name: column[:10] for name, column in _columns().items()}, **others})
    for part in (table, table.slice(3, 4), table.slice(0, 0), pa.concat_tables([table, table.slice(1)])):
        shown = preview(part, range(part.num_rows))
        assert shown.num_rows == part.num_rows
        assert pa.ipc.open_stream(stream(shown)).read_all().shape == shown.shape
        for place, column in enumerate(part.columns):
            if part.schema.names[place] != "empty vector":
                assert shown.column(place).null_count == column.null_count
            if shown.schema.types[place] == pa.string():
                assert all(
                    len(text) <= 160 and text.isprintable() for text in shown.column(place).drop_null().to_pylist()
                )
