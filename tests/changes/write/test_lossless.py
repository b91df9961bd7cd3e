"""Tests of appends, merges and updates whose data is cast to the types of the table."""

from __future__ import annotations

import datetime as dt
import decimal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance as reference
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lance_dataset as lance
from lance_dataset.changes.write.lossless import cast_exactly, fitted_schema
from lance_dataset.errors import SchemaError
from lance_dataset.types.schema import Schema

MICRO, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
WORDS = pa.array(["x", None, ""])


def column(values: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"a": pa.array(values, kind)})


#: Values of a table, values of another type to append, and the values that are read then.
FITTING: dict[str, tuple[pa.Table, Any, list[Any]]] = {
    "wider integers": (column([1]), column([2, None], pa.int8()), [1, 2, None]),
    "narrower integers": (column([1], pa.int8()), column([127, None]), [1, 127, None]),
    "unsigned": (column([1]), column([7], pa.uint64()), [1, 7]),
    "integers as floats": (column([0.5]), column([2]), [0.5, 2.0]),
    "whole floats": (column([1]), column([2.0, None]), [1, 2, None]),
    "half the digits": (
        column([1.0], pa.float32()),
        column([0.25, float("inf"), None]),
        [1.0, 0.25, float("inf"), None],
    ),
    "texts": (column(["x"]), column(["y", None], pa.large_string()), ["x", "y", None]),
    "views": (column(["x"]), column(["y" * 20, None], pa.string_view()), ["x", "y" * 20, None]),
    "bytes": (column([b"x"]), column([b"yz"], pa.binary(2)), [b"x", b"yz"]),
    "bytes of a size": (column([b"xy"], pa.binary(2)), column([b"zz"]), [b"xy", b"zz"]),
    "dictionary": (column(["x"]), pa.table({"a": WORDS.dictionary_encode()}), ["x", "x", None, ""]),
    "into a dictionary": (pa.table({"a": WORDS.dictionary_encode()}), column(["q"]), ["x", None, "", "q"]),
    "moments": (column([1], MICRO), column([2000], pa.timestamp("ns")), [1, 2]),
    "moments elsewhere": (column([1], ZONED), column([2], pa.timestamp("us", "Europe/Rome")), [1, 2]),
    "days": (column([dt.date(2020, 1, 1)]), column([dt.date(2020, 1, 2)], pa.date64()), []),
    "decimals": (column([decimal.Decimal("1.25")]), column([decimal.Decimal("0.5")], pa.decimal128(2, 1)), []),
    "nothing": (column(["x"]), column([None]), ["x", None]),
    "structs": (
        column([{"x": 1, "y": "a"}]),
        column([{"y": "b", "x": 2}, None], pa.struct({"y": pa.large_string(), "x": pa.int8()})),
        [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, None],
    ),
    "lists": (column([[1]]), column([[2], [], None], pa.large_list(pa.int8())), [[1], [2], [], None]),
    "vectors": (column([[1, 2]], pa.list_(pa.float32(), 2)), column([[3.0, 0.5], None]), [[1, 2], [3, 0.5], None]),
    "pandas with gaps": (column([1]), pd.DataFrame({"a": [2, np.nan]}), [1, 2, None]),
    "pandas without values": (column([1]), pd.DataFrame({"a": [None, None]}), [1, None, None]),
    "pandas without rows": (column(["x"]), pd.DataFrame({"a": []}), ["x"]),
    "polars": (column(["x"]), pl.DataFrame({"a": ["y", None]}), ["x", "y", None]),
    "polars categories": (column(["x"]), pl.DataFrame({"a": ["y"]}, schema={"a": pl.Categorical}), ["x", "y"]),
}


@pytest.mark.parametrize("name", FITTING)
def test_values_that_fit(tmp_path: Path, name: str) -> None:
    table, data, expected = FITTING[name]
    lance.write_dataset(table, tmp_path / "t")
    found = lance.write_dataset(data, tmp_path / "t", mode="append").to_table()
    assert found.schema == reference.dataset(tmp_path / "t").schema == lance.dataset(tmp_path / "t", version=1).schema
    assert found == reference.dataset(tmp_path / "t").to_table()
    if expected:
        shown = found["a"].cast(pa.int64()) if pa.types.is_timestamp(found["a"].type) else found["a"]
        assert shown.to_pylist() == expected


#: Values of a table, values that would change, and a text of the error.
CHANGING: dict[str, tuple[pa.Table, Any, str]] = {
    "too large": (column([1], pa.int8()), column([1, 2, 1000]), r"column 'a', row 2: 1000 .* pyarrow.int8\(\)"),
    "negative": (column([1], pa.uint8()), column([-1]), "row 0: -1"),
    "digits after the point": (column([1]), column([1.0, 2.5]), "row 1: 2.5"),
    "not a number": (column([1]), column([float("nan")]), "row 0: nan"),
    "digits lost": (column([1.0], pa.float32()), column([0.5] * 99 + [0.1]), "row 99: 0.1 .*float32"),
    "many digits": (column([1.0]), column([2**53 + 1]), "row 0: 9007199254740993"),
    "a nanosecond": (column([1], MICRO), column([1], pa.timestamp("ns")), "row 0"),
    "another length": (column([[1, 2]], pa.list_(pa.int64(), 2)), column([[1, 2], [1]]), r"row 1: \[1\]"),
    "inside": (column([[{"x": 1.0}]], pa.list_(pa.struct({"x": pa.float32()}))), column([[{"x": 0.1}]]), "row 0"),
    "text as number": (column([1]), column(["2"]), "should have type int64 but type was string"),
    "number as text": (column(["x"]), column([2]), "should have type string but type was int64"),
    "boolean as number": (column([1]), column([True]), "should have type int64 but type was bool"),
    "bytes as text": (column(["x"]), column([b"y"]), "should have type string but type was binary"),
    "without a zone": (column([1], ZONED), column([1], MICRO), "should have type timestamp:us:UTC"),
}


@pytest.mark.parametrize("name", CHANGING)
def test_values_that_would_change(tmp_path: Path, name: str) -> None:
    table, data, text = CHANGING[name]
    dataset = lance.write_dataset(table, tmp_path / "t")
    files = set((tmp_path / "t" / "data").iterdir())
    with pytest.raises(SchemaError, match=text):
        lance.write_dataset(data, tmp_path / "t", mode="append")
    assert lance.dataset(tmp_path / "t").version == dataset.version
    assert set((tmp_path / "t" / "data").iterdir()) == files


NUMBERS = [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()]
VALUES = {
    pa.float16(): st.floats(width=16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | st.integers(-(2**60), 2**60).map(float),
}


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if kind in VALUES:
        return VALUES[kind]
    bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
    return st.integers(-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1) | st.integers(0, 100)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_numbers_keep_their_values(data: st.DataObject) -> None:
    """All numbers are equal after a cast; one is refused only if they are not."""
    source, target = data.draw(st.sampled_from(NUMBERS)), data.draw(st.sampled_from(NUMBERS))
    table = Schema.from_arrow(pa.schema({"a": target}))
    assume(fitted_schema(pa.schema({"a": source}), table).field("a").type == target)
    values = data.draw(st.lists(st.none() | values_of(source), max_size=5))
    array = pa.array(
        [np.float16(each) if source == pa.float16() and each is not None else each for each in values], source
    )
    try:
        result = cast_exactly(array, pa.field("a", target))
    except SchemaError:
        result = None
    unchecked = array.cast(target, safe=False) if result is None else result
    pairs = zip(array.to_pylist(), unchecked.to_pylist(), strict=True)
    assert all(old == new or (old != old and new != new) for old, new in pairs) == (result is not None)


def test_equal_types_cost_nothing() -> None:
    schema = pa.schema({"a": pa.int64(), "s": pa.struct({"x": pa.list_(pa.string())})})
    assert fitted_schema(schema, Schema.from_arrow(schema)) is schema


def test_merges_and_updates(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([1, 2], pa.int32()), "s": ["a", "b"]})
    dataset = lance.write_dataset(table, tmp_path / "t")
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        pl.DataFrame({"id": [2, 3], "s": ["B", "C"]})
    )
    assert sorted(dataset.to_table()["s"].to_pylist()) == ["B", "C", "a"]
    with pytest.raises(SchemaError, match="column 'id', row 0"):
        dataset.merge_insert("id").when_not_matched_insert_all().execute(pa.table({"id": [1 << 40], "s": ["x"]}))
    fragment = lance.write_dataset(table, tmp_path / "u").get_fragments()[0]
    changed, fields = fragment.update_columns(pa.table({"id": [2], "s": pa.array(["q"], pa.large_string())}), "id")
    operation = lance.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    found = lance.LanceDataset.commit(tmp_path / "u", operation, read_version=1)
    assert found.to_table()["s"].to_pylist() == ["a", "q"]


SOURCES: dict[str, Callable[[], Any]] = {
    "table": lambda: column([1, 2], pa.int16()),
    "batch": lambda: column([1, 2], pa.int16()).to_batches()[0],
    "reader": lambda: column([1, 2], pa.int16()).to_reader(),
    "polars": lambda: pl.DataFrame({"a": [1, 2]}, schema={"a": pl.Int16}),
    "pandas": lambda: pd.DataFrame({"a": [1, 2]}),
    "dict": lambda: {"a": [1, 2]},
    "rows": lambda: [{"a": 1}, {"a": 2}],
    "rows one by one": lambda: ({"a": each} for each in (1, 2)),
    "frames": lambda: (pd.DataFrame({"a": [each]}) for each in (1, 2)),
    "polars frames": lambda: (pl.DataFrame({"a": [each]}) for each in (1, 2)),
    "batches": lambda: iter(column([1, 2], pa.int16()).to_batches(max_chunksize=1)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_schema_is_that_of_the_argument(tmp_path: Path, name: str) -> None:
    schema = pa.schema({"a": pa.float32()})
    found = lance.write_dataset(SOURCES[name](), tmp_path / "t", schema=schema).to_table()
    assert found == pa.table({"a": [1.0, 2.0]}, schema=schema)
    if "row" not in name:  # as in pyarrow, missing keys of rows mean null
        with pytest.raises(ValueError, match=r"'b'|: b$"):
            lance.write_dataset(SOURCES[name](), tmp_path / "u", schema=pa.schema({"b": pa.int8()}))


@pytest.mark.parametrize("name", ["rows one by one", "frames", "polars frames"])
def test_iterables_without_a_schema(tmp_path: Path, name: str) -> None:
    assert lance.write_dataset(SOURCES[name](), tmp_path / "t").to_table() == column([1, 2])


def test_many_rows_one_by_one(tmp_path: Path) -> None:
    rows: Iterator[dict[str, Any]] = ({"a": each, "b": str(each)} for each in range(20_000))
    found = lance.write_dataset(rows, tmp_path / "t").to_table()
    assert found["a"].to_pylist() == list(range(20_000))
    later = ({"a": each} if each < 9000 else {"a": "x"} for each in range(9001))
    with pytest.raises(ValueError, match="column 'a'"):
        lance.write_dataset(later, tmp_path / "u")
    assert not (tmp_path / "u").exists()


def test_the_index_of_a_filtered_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3]})
    filtered = frame[frame["a"] > 1]
    with pytest.warns(UserWarning, match="preserve_index=True") as caught:
        assert lance.write_dataset(filtered, tmp_path / "t").schema.names == ["a"]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = lance.write_dataset(filtered, tmp_path / "u", preserve_index=True)
        assert kept.to_table().to_pydict() == {"a": [2, 3], "__index_level_0__": [1, 2]}
        lance.write_dataset(filtered, tmp_path / "u", mode="append")
        assert lance.dataset(tmp_path / "u").to_table()["__index_level_0__"].to_pylist() == [1, 2, 1, 2]
        assert lance.write_dataset(filtered, tmp_path / "v", preserve_index=False).schema.names == ["a"]
        named = filtered.rename_axis("i")
        assert lance.write_dataset(named, tmp_path / "w").schema.names == ["a", "i"]
    with pytest.raises(TypeError, match="preserve_index"):
        lance.write_dataset(column([1]), tmp_path / "x", preserve_index=True)
