"""Tests of options of writes: new columns, rows replaced by key, vectors, compression, row ids."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import lance as reference
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.spark.options import WriteOptions
from lance_dataset.spark.streaming.writer import BatchMessage, LanceStreamWriter
from lance_dataset.spark.types import spark_schema
from lance_dataset.spark.writer import LanceWriter, plan_write


def writer(uri, table, overwrite=False, metadata=None, **options) -> LanceWriter:
    schema = spark_schema(table.schema)
    for name, values in (metadata or {}).items():
        schema[name].metadata = values
    return LanceWriter(plan_write(WriteOptions.parse({"path": uri, **options}), schema, overwrite))


def write(uri, table, overwrite=False, tasks=1, **options):
    made = writer(uri, table, overwrite, **options)
    size = -(-table.num_rows // tasks) or 1
    parts = [table.slice(start, size) for start in range(0, table.num_rows, size)]
    made.commit([made.write(iter(part.to_batches())) for part in parts])


def rows(uri):
    return reference.dataset(uri).to_table().to_pylist()


ONE = pa.table({"id": pa.array([1], pa.int64())})
MORE = pa.table(
    {
        "s": pa.array([{"a": 1, "b": ["x"]}], pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
        "id": pa.array([2], pa.int64()),
        "n": pa.array(["two"]),
    }
)


class TestNewColumns:
    def test_an_append_adds_them(self, uri):
        write(uri, ONE)
        write(uri, MORE, mergeSchema="true")
        write(uri, ONE, mergeSchema="true")
        assert rows(uri) == [
            {"id": 1, "s": None, "n": None},
            {"id": 2, "s": {"a": 1, "b": ["x"]}, "n": "two"},
            {"id": 1, "s": None, "n": None},
        ]
        assert reference.dataset(uri).version == 4
        lance_dataset.dataset(uri).validate()

    def test_the_numbers_of_fields_may_have_gaps(self, uri):
        write(uri, MORE)
        lance_dataset.dataset(uri).drop_columns(["s"])
        write(uri, MORE, merge_schema="true", txn_id="once")
        write(uri, MORE, merge_schema="true", txn_id="once")
        assert [row["s"] for row in rows(uri)] == [None, {"a": 1, "b": ["x"]}]

    def test_two_writers_add_one_column(self, uri):
        write(uri, ONE)
        made = [writer(uri, MORE, merge_schema="true") for _ in range(2)]
        messages = [each.write(iter(MORE.to_batches())) for each in made]
        other = MORE.set_column(2, "n", pa.array([5], pa.int64()))
        wrong = writer(uri, other, merge_schema="true")
        failed = wrong.write(iter(other.to_batches()))
        for each, message in zip(made, messages, strict=True):
            each.commit([message])
        assert [row["n"] for row in rows(uri)] == [None, "two", "two"]
        with pytest.raises(SchemaError, match=r"Column 'n' was added by another writer as string, while .* int64"):
            wrong.commit([failed])
        wrong.abort([failed])
        assert len(rows(uri)) == 3

    def test_a_stream_adds_them(self, uri):
        write(uri, ONE)
        schema = spark_schema(MORE.schema)
        made = LanceStreamWriter(WriteOptions.parse({"path": uri, "mergeSchema": "true"}), schema, False)
        for batch in (0, 1, 1):
            made.commit([BatchMessage(made.write(iter(MORE.to_batches())).fragments, "q")], batch)
        assert [row["n"] for row in rows(uri)] == [None, "two", "two"]

    def test_they_are_refused_without_the_option(self, uri):
        write(uri, ONE)
        with pytest.raises(SchemaError, match=r"Column 's' is not in the dataset.*set the option merge_schema to true"):
            writer(uri, MORE)
        with pytest.raises(SchemaError, match="Column 'id' is string in the data"):
            writer(uri, pa.table({"id": ["x"]}), merge_schema="true")
        with pytest.raises(InvalidInputError, match="'merge_schema' is for appends"):
            writer(uri, MORE, overwrite=True, merge_schema="true")


class TestReplacingByKey:
    def test_rows_with_the_same_keys_are_replaced(self, uri):
        def days(*pairs):
            return pa.table({"day": pa.array([day for day, _ in pairs], pa.date32()), "v": [v for _, v in pairs]})

        one, two, three = (dt.date(2024, 1, day) for day in (1, 2, 3))
        write(uri, days((one, 1), (one, 2), (two, 3), (None, 4)))
        write(uri, days((two, 30), (three, 5), (three, 6)), overwrite=True, tasks=2, replaceBy="day")
        assert sorted((row["day"] or dt.date.max, row["v"]) for row in rows(uri)) == [
            (one, 1), (one, 2), (two, 30), (three, 5), (three, 6), (dt.date.max, 4),
        ]  # fmt: skip
        write(uri, days((None, 40)), overwrite=True, replace_by="day")
        assert [row["v"] for row in rows(uri) if row["day"] is None] == [40]
        assert reference.dataset(uri).version == 3
        write(uri, days(), overwrite=True, replace_by="day")
        assert reference.dataset(uri).version == 3

    def test_several_columns_are_one_key(self, uri):
        def table(values):
            names = ("a", "b", "c", "v")
            types = (pa.string(), pa.decimal128(5, 2), pa.bool_(), pa.int64())
            columns = zip(*values, strict=True)
            return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})

        half, none = Decimal("0.50"), None
        write(
            uri, table([("it's", half, True, 1), ("it's", half, False, 2), ("x", none, True, 3), (none, half, True, 4)])
        )
        changed = [("it's", half, True, 10), ("x", none, True, 30), (none, half, none, 50)]
        write(uri, table(changed), overwrite=True, replace_by='["a", "b", "c"]')
        assert sorted(row["v"] for row in rows(uri)) == [2, 4, 10, 30, 50]

    def test_wrong_keys(self, uri, monkeypatch):
        table = pa.table({"id": [1, 2], "x": [0.5, 1.5]})
        for _ in range(2):  # for a new dataset, and for an old one
            with pytest.raises(UnsupportedError, match="'replace_by' names the column 'x' of type double"):
                writer(uri, table, overwrite=True, replace_by="x")
            with pytest.raises(FieldNotFoundError, match="a column 'ids' that is not in the data; did you mean 'id'"):
                writer(uri, table, overwrite=True, replace_by="ids")
            write(uri, table)
        with pytest.raises(InvalidInputError, match="'replace_by' needs the mode overwrite"):
            writer(uri, table, replace_by="id")
        with pytest.raises(InvalidInputError, match="not both"):
            writer(uri, table, overwrite=True, replace_by="id", replace_where="id = 1")
        monkeypatch.setattr("lance_dataset.spark.replaced_keys._MOST_KEYS", 1)
        with pytest.raises(InvalidInputError, match="'replace_by' have more than 1 values"):
            write(uri, table, overwrite=True, replace_by="id")
        assert len(rows(uri)) == 4


class TestNewDatasets:
    def test_vectors_and_compression(self, uri):
        vectors = pa.array([[0.0] * 4] * 50_000, pa.list_(pa.float32()))
        table = pa.table({"v": vectors, "t": ["the same words again"] * 50_000, "w": ["the same words again"] * 50_000})
        schemes = json.dumps({"t": "zstd:9", "w": "none"})
        write(uri, table, vectorLength='{"v": 4}', compression=schemes)
        stored = reference.dataset(uri)
        assert stored.schema.field("v").type == pa.list_(pa.float32(), 4)
        kept = {name: stored.schema.field(name).metadata for name in ("v", "t", "w")}
        assert kept == {
            "v": None,
            "t": {b"lance-encoding:compression": b"zstd", b"lance-encoding:compression-level": b"9"},
            "w": {b"lance-encoding:compression": b"none"},
        }
        assert stored.to_table().num_rows == 50_000

    def test_one_scheme_for_all_columns_also_nested_ones(self, uri, tmp_path):
        words = [[f"a text that is repeated {n % 7}" for n in range(start, start + 5)] for start in range(20_000)]
        table = pa.table({"l": pa.array(words), "m": pa.array([[("k", 1)]] * 20_000, pa.map_(pa.string(), pa.int32()))})
        write(uri, table, compression="zstd", data_storage_version="2.2")
        plain = str(tmp_path / "plain.lance")
        write(plain, table, compression="none", data_storage_version="2.2")
        assert reference.dataset(uri).to_table() == reference.dataset(plain).to_table()
        sizes = [
            sum(f.file_size_bytes for f in reference.dataset(u).get_fragments()[0].metadata.files) for u in (uri, plain)
        ]
        assert sizes[0] * 3 < sizes[1]

    def test_columns_keep_their_metadata(self, uri):
        metadata = {"id": {"lance-encoding:compression": "lz4", "other": 1}}
        made = writer(uri, ONE, metadata=metadata)
        made.commit([made.write(iter(ONE.to_batches()))])
        assert reference.dataset(uri).schema.field("id").metadata == {b"lance-encoding:compression": b"lz4"}

    @pytest.mark.parametrize("empty", [False, True])
    def test_stable_row_ids(self, uri, empty):
        write(uri, ONE.slice(0, 0) if empty else ONE, enableStableRowIds="true")
        assert reference.dataset(uri).has_stable_row_ids
        write(uri, ONE, enable_stable_row_ids="true")
        write(uri, ONE, overwrite=True, enable_stable_row_ids="true")
        assert lance_dataset.dataset(uri).has_stable_row_ids

    def test_old_datasets_cannot_get_stable_row_ids(self, uri):
        write(uri, ONE)
        for overwrite in (False, True):
            with pytest.raises(InvalidInputError, match="has no stable row ids, and only new datasets can get them"):
                writer(uri, ONE, overwrite, enable_stable_row_ids="true")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"compression": "gzip"}, "'compression' has 'gzip' for the column .*; it must be one of none, zstd"),
            ({"compression": '{"idd": "zstd"}'}, "a column 'idd' that the data does not have; did you mean 'id'"),
            ({"compression": "zstd:high"}, "must be one of"),
            ({"compression": '{"id": '}, "'compression' is not JSON"),
            ({"vector_length": "[1]"}, "'vector_length' must be a JSON object by column"),
            ({"vector_length": '{"id": 0}'}, "'id' must be a positive whole number"),
            ({"vector_length": '{"id": 3}'}, "Column 'id' has the option 'vector_length' but is not an array"),
        ],
    )
    def test_wrong_options(self, uri, options, message):
        with pytest.raises((InvalidInputError, SchemaError), match=message):
            writer(uri, ONE, **options)
