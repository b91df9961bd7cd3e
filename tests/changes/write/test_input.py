"""Tests of the kinds of data that users may pass and how they fit a dataset, compared with the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.changes.write.input import as_batches
from lance_dataset.errors import InvalidInputError, SchemaError
from lance_dataset.file.extensions import storage_type, with_extensions
from lance_dataset.file.storage import storage_batch
from lance_dataset.table.append_schema import check_append_schema
from lance_dataset.types.schema import Schema

BATCH = pa.record_batch({"a": [1, 2], "b": ["x", None]})
TABLE = pa.Table.from_batches([BATCH])


def _read(data: object, schema: pa.Schema | None = None) -> pa.Table:
    found, batches = as_batches(data, schema)
    batches = list(batches)
    assert all(batch.schema.equals(found, check_metadata=True) for batch in batches)
    return pa.Table.from_batches(batches, found)


class _Model(pydantic.BaseModel):
    a: int | None
    b: str | None


class _Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class _Array:
    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return BATCH.__arrow_c_array__(requested_schema)


class _Features:
    arrow_schema = BATCH.schema.with_metadata({"huggingface": "{}"})


class _HuggingFace:
    """A stand-in for a Hugging Face dataset, with the methods for reading Arrow data."""

    features = _Features()

    def with_format(self, kind: str) -> _HuggingFace:
        assert kind == "arrow"
        return self

    def iter(self, batch_size: int) -> Iterator[pa.Table]:
        assert batch_size > 0
        yield TABLE.replace_schema_metadata({"huggingface": "{}"})


@pytest.mark.parametrize(
    "make",
    [
        lambda: TABLE,
        lambda: BATCH,
        lambda: pa.RecordBatchReader.from_batches(BATCH.schema, [BATCH]),
        lambda: pads.dataset(TABLE),
        lambda: pads.dataset(TABLE).scanner(),
        lambda: {"a": [1, 2], "b": ["x", None]},
        lambda: [{"a": 1, "b": "x"}, {"a": 2, "b": None}],
        lambda: [{"a": 1, "b": "x"}, {"a": 2}],
        lambda: [_Model(a=1, b="x"), _Model(a=2, b=None)],
        _Stream,
        _Array,
        _HuggingFace,
    ],
)
def test_every_kind(make: object) -> None:
    assert _read(make()).equals(TABLE)


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="i")),
        pl.DataFrame({"a": [1, 2], "s": ["x", "y"], "l": [[1], [2]]}),
        {"a": [1, None], "l": [[1], []]},
        [{"a": 1}, {"a": None}],
    ],
    ids=["pandas", "pandas with index", "polars", "dict", "rows"],
)
def test_schema_as_the_reference(tmp_path: Path, data: object) -> None:
    expected = lance.write_dataset(data, tmp_path / "d").to_table()
    found = _read(data)
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.to_pylist() == expected.to_pylist()


def test_schema_given_for_what_has_none() -> None:
    schema = pa.schema([("b", pa.large_string()), ("a", pa.int8())])
    expected = pa.table({"b": ["x", None], "a": [1, 2]}).cast(schema)
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert _read(frame, schema).cast(schema).equals(expected)
    assert _read({"a": [1, 2], "b": ["x", None]}, schema).equals(expected)
    assert _read([{"a": 1, "b": "x"}, {"a": 2}], schema).equals(expected)
    assert _read(iter([BATCH]), schema).equals(expected)
    assert _read((part for part in [TABLE, BATCH]), schema).equals(pa.concat_tables([expected, expected]))
    assert _read([], schema).equals(schema.empty_table())


def test_iterators_are_not_read_ahead() -> None:
    taken = []

    def source() -> Iterator[pa.RecordBatch]:
        for position in range(5):
            taken.append(position)
            yield BATCH

    _, batches = as_batches(source(), BATCH.schema)
    assert taken == []
    assert next(batches) is BATCH
    assert taken == [0]


def test_exceptions_of_iterators_come_through() -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        _read(source(), BATCH.schema)


@pytest.mark.parametrize("data", [iter([BATCH]), [BATCH], []])
def test_iterable_needs_a_schema(data: object) -> None:
    with pytest.raises(ValueError, match="Must provide schema to write dataset from RecordBatch iterable"):
        as_batches(data)


@pytest.mark.parametrize("data", [None, 3, "abc", b"abc", pl.LazyFrame({"a": [1]})])
def test_unknown_kinds(data: object) -> None:
    with pytest.raises(TypeError, match="Unknown data type"):
        as_batches(data)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (pa.record_batch({"a": [1]}), r"missing=\['b'\]"),
        (pa.record_batch({"a": [1], "b": ["x"], "c": [1]}), r"unexpected=\['c'\]"),
        (pa.record_batch({"a": ["q"], "b": ["x"]}), "column 'a' of item 1"),
        (pa.record_batch({"a": [2**40], "b": ["x"]}), "column 'a' of item 1"),
        (pa.record_batch({"a": pa.array([None], pa.int64()), "b": ["x"]}), "not nullable"),
    ],
)
def test_batches_that_do_not_fit_the_given_schema(item: object, message: str) -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), ("b", pa.string())])
    with pytest.raises(SchemaError, match=message):
        _read(iter([BATCH, item]), schema)


def test_other_errors() -> None:
    with pytest.raises(TypeError, match="item 0 of the data is a int"):
        _read([1], BATCH.schema)
    with pytest.raises(InvalidInputError, match="'z'"):
        as_batches(pd.DataFrame({"a": [1]}), pa.schema([("z", pa.int32())]))
    with pytest.raises(InvalidInputError, match="cannot be converted"):
        as_batches({"a": [1], "b": [1, 2]})
    with pytest.raises(TypeError, match="schema must be"):
        as_batches(TABLE, {"a": "int"})  # type: ignore[arg-type]


# -- storage_batch ---------------------------------------------------------------------------------------------------


def test_nothing_to_do_is_free() -> None:
    schema = Schema.from_arrow(BATCH.schema)
    assert storage_batch(BATCH, schema) is BATCH
    assert storage_batch(BATCH.replace_schema_metadata({"x": "y"}), schema).schema.metadata == {b"x": b"y"}


def test_reorders_and_fills() -> None:
    schema = Schema.from_arrow(pa.schema([("c", pa.int8()), ("b", pa.string()), ("a", pa.int64())]))
    found = storage_batch(BATCH, schema)
    assert found.schema == schema.storage_arrow
    assert found.to_pylist() == [{"c": None, "b": "x", "a": 1}, {"c": None, "b": None, "a": 2}]
    with pytest.raises(SchemaError, match="no column 'c'"):
        storage_batch(BATCH, schema, fill_missing=False)


_UUID = pa.uuid()
_NESTED = {
    "uuid": (_UUID, pa.binary(16), [b"0" * 16, None, b"1" * 16, b"2" * 16]),
    "struct": (
        pa.struct([("x", _UUID), ("v", pa.string_view())]),
        pa.struct([("x", pa.binary(16)), ("v", pa.string())]),
        [{"x": b"0" * 16, "v": "a"}, None, {"x": None, "v": None}, {"x": b"1" * 16, "v": "b" * 30}],
    ),
    "list": (pa.list_(_UUID), pa.list_(pa.binary(16)), [[b"0" * 16], None, [], [None, b"1" * 16]]),
    "list of views": (pa.list_(pa.binary_view()), pa.list_(pa.binary()), [[b"0" * 16], None, [], [None, b"1"]]),
    "large list of structs": (
        pa.large_list(pa.struct([("x", _UUID)])),
        pa.large_list(pa.struct([("x", pa.binary(16))])),
        [[{"x": b"0" * 16}], None, [], [None, {"x": None}]],
    ),
    "fixed list": (pa.list_(_UUID, 2), pa.list_(pa.binary(16), 2), [[b"0" * 16, None], None, [b"1" * 16] * 2, None]),
    "required items": (pa.list_(pa.field("item", pa.int8(), False)), pa.list_(pa.int8()), [[1], None, [], [2, 3]]),
    "ordered dictionary": (
        pa.dictionary(pa.int8(), pa.string(), ordered=True),
        pa.dictionary(pa.int8(), pa.string()),
        ["a", None, "b", "a"],
    ),
    "renamed item": (pa.list_(pa.field("element", pa.int8())), pa.list_(pa.int8()), [[1], None, [], [2, 3]]),
    "struct in another order": (
        pa.struct([("b", pa.int8()), ("a", pa.int16())]),
        pa.struct([("a", pa.int16()), ("b", pa.int8())]),
        [{"b": 1, "a": 2}, None, {"b": None, "a": 3}, {"b": 4, "a": 5}],
    ),
    "struct with less": (
        pa.struct([("b", pa.int8())]),
        pa.struct([("a", pa.struct([("q", pa.int16())])), ("b", pa.int8())]),
        [{"b": 1}, None, {"b": None}, {"b": 2}],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "wanted", "values"), _NESTED.values(), ids=_NESTED)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_nested_conversions(given: pa.DataType, wanted: pa.DataType, values: list, start: int) -> None:
    if pa.types.is_dictionary(given):
        array = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.int8()), pa.array(["a", "b"]), ordered=True)
    else:
        storage = pa.array(values, storage_type(given))
        plain = pa.record_batch([storage], names=["v"])
        array = with_extensions(plain, pa.schema([("v", given)])).column(0)
    batch = pa.record_batch([array], names=["v"]).slice(start)
    schema = Schema.from_arrow(pa.schema([("v", wanted)]))
    found = storage_batch(batch, schema)
    found.validate(full=True)
    assert found.schema == schema.storage_arrow
    expected = [
        dict.fromkeys([field.name for field in wanted]) | value if isinstance(value, dict) else value
        for value in values[start:]
    ]
    assert found.column(0).to_pylist() == expected


@pytest.mark.parametrize(
    ("given", "wanted", "path"),
    [
        (pa.int64(), pa.int32(), "'v': the data has type int64, but the schema has int32"),
        (pa.string(), pa.large_string(), "'v'"),
        (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int16())]), "'v.a'"),
        (pa.list_(pa.struct([("a", pa.int8())])), pa.list_(pa.struct([("a", pa.int16())])), "'v.item.a'"),
        (pa.list_(pa.int8()), pa.list_(pa.int8(), 2), "'v'"),
        (pa.list_(pa.int8(), 3), pa.list_(pa.int8(), 2), "'v'"),
        (pa.struct([("a", pa.int8())]), pa.struct([("b", pa.int8())]), "'a'"),
        (pa.struct([]), pa.struct([pa.field("b", pa.int8(), False)]), "'v.b'"),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), "'v'"),
    ],
)
def test_types_that_do_not_fit(given: pa.DataType, wanted: pa.DataType, path: str) -> None:
    batch = pa.record_batch([pa.nulls(2, given)], names=["v"])
    with pytest.raises(SchemaError, match=path):
        storage_batch(batch, Schema.from_arrow(pa.schema([("v", wanted)])))


def test_nulls_where_there_must_be_none() -> None:
    schema = Schema.from_arrow(pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    assert storage_batch(pa.record_batch({"a": [1]}), schema).num_rows == 1
    with pytest.raises(SchemaError, match="column 'a' is declared not nullable"):
        storage_batch(pa.record_batch({"a": pa.array([1, None])}), schema)


_ITEMS = st.one_of(st.none(), st.binary(min_size=16, max_size=16))


@given(st.lists(st.lists(_ITEMS, max_size=4) | st.none(), max_size=20), st.integers(0, 20))
def test_extensions_inside_lists_hypothesis(values: list, start: int) -> None:
    storage = pa.record_batch([pa.array(values, pa.list_(pa.binary(16)))], names=["v"]).slice(start)
    extended = with_extensions(storage, pa.schema([("v", pa.list_(_UUID))]))
    extended.validate(full=True)
    assert extended.schema.field("v").type == pa.list_(_UUID)
    back = storage_batch(extended, Schema.from_arrow(extended.schema))
    assert back.equals(storage)


def test_with_extensions_checks_storage() -> None:
    with pytest.raises(SchemaError, match="column 'v': the data has type int64"):
        with_extensions(pa.table({"v": [1]}), pa.schema([("v", _UUID)]))
    with pytest.raises(SchemaError, match="the columns"):
        with_extensions(pa.table({"v": [1]}), pa.schema([("w", _UUID)]))
    table = pa.table({"i": [1, 2], "v": pa.array([b"0" * 16, None], pa.binary(16))})
    schema = pa.schema([("i", pa.int64()), ("v", _UUID)], metadata={"k": "v"})
    found = with_extensions(pa.concat_tables([table, table]), schema)
    assert found.schema.equals(schema, check_metadata=True)
    assert found.column("v").combine_chunks().storage.to_pylist() == [b"0" * 16, None] * 2


# -- check_append_schema ---------------------------------------------------------------------------------------------

EXISTING = pa.schema(
    [
        pa.field("a", pa.int32()),
        pa.field("n", pa.int32(), False),
        pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        pa.field("l", pa.list_(pa.int32())),
    ]
)


def _changed(**changes: pa.DataType | pa.Field | None) -> pa.Schema:
    fields = {field.name: field for field in EXISTING}
    for name, change in changes.items():
        fields[name] = pa.field(name, change) if isinstance(change, pa.DataType) else change
    return pa.schema([field for field in fields.values() if field is not None])


APPENDS = {
    "same": EXISTING,
    "other order": pa.schema(list(EXISTING)[::-1]),
    "missing nullable": _changed(a=None),
    "missing required": _changed(n=None),
    "unexpected": _changed(q=pa.int8()),
    "other case": _changed(a=None, A=pa.int32()),
    "other type": _changed(a=pa.int64()),
    "text": _changed(a=pa.string()),
    "two types": _changed(a=pa.int64(), n=pa.int64()),
    "type and unexpected": _changed(a=pa.int64(), q=pa.int8()),
    "nullable": _changed(n=pa.int32()),
    "required": _changed(a=pa.field("a", pa.int32(), False)),
    "struct type": _changed(s=pa.struct([("x", pa.string()), ("y", pa.string())])),
    "struct missing": _changed(s=pa.struct([("x", pa.int32())])),
    "struct unexpected": _changed(s=pa.struct([("x", pa.int32()), ("y", pa.string()), ("z", pa.int8())])),
    "struct order": _changed(s=pa.struct([("y", pa.string()), ("x", pa.int32())])),
    "list type": _changed(l=pa.list_(pa.int64())),
    "list item name": _changed(l=pa.list_(pa.field("element", pa.int32()))),
    "list item required": _changed(l=pa.list_(pa.field("item", pa.int32(), False))),
    "large list": _changed(l=pa.large_list(pa.int32())),
    "list of structs": _changed(l=pa.list_(pa.struct([("x", pa.int32())]))),
    "dictionary": _changed(a=pa.dictionary(pa.int8(), pa.string())),
    "null": _changed(a=pa.null()),
}


@pytest.mark.parametrize("given", APPENDS.values(), ids=APPENDS)
def test_append_schema_as_the_reference(tmp_path: Path, given: pa.Schema) -> None:
    lance.write_dataset(EXISTING.empty_table(), tmp_path / "d", data_storage_version="2.0")
    assert _refusal(lambda: check_append_schema(given, Schema.from_arrow(EXISTING))) == _refusal(
        lambda: lance.write_dataset(given.empty_table(), tmp_path / "d", mode="append")
    )


def _refusal(call: Callable[[], object]) -> str | None:
    try:
        call()
    except OSError as error:
        return str(error).partition(", location:")[0]
    return None
