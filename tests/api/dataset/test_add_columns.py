"""Tests of added columns, compared with the reference, and of guarantees that only this package gives."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.reference.same_change import ROWS, assert_same_change, example

import lance_dataset
from lance_dataset.changes.columns import udf as udf_module
from lance_dataset.errors import (
    CommitConflictError,
    CorruptFileError,
    InvalidInputError,
    SchemaError,
    StorageError,
    UnsupportedError,
)
from lance_dataset.udf import BatchUDF, BatchUDFCheckpoint, normalize_transform

VERSIONS = ["0.1", "2.0", "2.1", "2.2"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def table(version: str) -> Path:
        if version not in made:
            made[version] = example(tmp_path_factory.mktemp("table") / version, version)
        return made[version]

    return table


class Made:
    """Data for `add_columns` that is built anew for each implementation and each call."""

    def __init__(self, make: Callable[[ModuleType], Any]) -> None:
        self.make = make


def adding(transforms: Any, **options: Any) -> Callable[[ModuleType, Any], None]:
    def change(module: ModuleType, dataset: Any) -> None:
        given = transforms.make(module) if isinstance(transforms, Made) else transforms
        dataset.add_columns(given, **options)

    return change


def udf(function: Callable[[pa.RecordBatch], Any], schema: pa.Schema | None = None) -> Made:
    return Made(lambda module: module.batch_udf(schema)(function))


def halves(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"u": pa.array(np.full(batch.num_rows, 1.5))})


def rows(count: int, **columns: Any) -> pa.Table:
    return pa.table({"r": pa.array(range(count), pa.int64()), **columns})


def failing_after(calls: int) -> Made:
    def make(module: ModuleType) -> Any:
        left = iter(range(calls))

        def function(batch: pa.RecordBatch) -> pa.RecordBatch:
            if next(left, None) is None:
                raise KeyError("later")
            return halves(batch)

        return module.batch_udf(HALVES)(function)

    return Made(make)


HALVES = pa.schema([("u", pa.float64())])
NOTED = pa.schema([pa.field("u", pa.float64(), False, {"a": "b"})], metadata={"made": "there", "z": "y"})
EVERY_TYPE = pa.table(
    {
        "small": pa.array([None, 1] * 48, pa.int8()),
        "list": pa.array([[1], None] * 48),
        "struct": pa.array([{"x": 1, "y": None}, None] * 48, pa.struct([("x", pa.int8()), ("y", pa.string())])),
        "vector": pa.array([[1.0, 2.0], None] * 48, pa.list_(pa.float32(), 2)),
        "bool": pa.array([True, None] * 48),
        "time": pa.array([1, None] * 48, pa.timestamp("us", "UTC")),
        "fixed": pa.array([b"ab", None] * 48, pa.binary(2)),
        "map": pa.array([[("k", 1)], None] * 48, pa.map_(pa.string(), pa.int32())),
        "null": pa.nulls(96),
        "dictionary": pa.array([None, "x"] * 48).dictionary_encode(),
        "decimal": pa.array([1, None] * 48).cast(pa.decimal128(30, 2)),
        "large": pa.array(["x", None] * 48, pa.large_string()),
    }
)
CHILD = pa.field("st", pa.struct([pa.field("c", pa.int8())]))

#: Changes that work on tables of every file version.
EVERYWHERE: dict[str, Any] = {
    "expression": adding({"x": "i + 1"}),
    "expressions": adding({"x": "i + 1", "y": "upper(s)", "z": "f * 2", "b": "i > 5", "n": "st.a"}),
    "a failure in deleted rows": adding({"x": "100 / i"}),
    "nested": adding({"x": "st", "l": "make_array(i, i + 1)"}),
    "data": adding(rows(ROWS)),
    "texts": adding(pa.table({"t": [f"<{i}>" for i in range(ROWS)]})),
    "function": adding(udf(halves)),
    "nulls": adding(pa.field("n", pa.int32())),
    "child": adding(CHILD),
}
#: Changes that need a table of file version 2.2.
CASES: dict[str, Any] = {
    "constants": adding({"x": "1", "y": "'a'", "z": "null", "w": "cast(null as int)", "b": "true"}),
    "not null": adding({"x": "i is null", "y": "coalesce(i, 1)"}),
    "a name in another case": adding({"I": "i + 1"}),
    "no expression": adding({}),
    "no name": adding({"": "i"}),
    "a name that is there": adding({"i": "i + 1"}),
    "a dot": adding({"a.b": "i"}),
    "a dot below a struct": adding({"st.c": "i"}),
    "unknown column": adding({"x": "nope"}),
    "no sql": adding({"x": "1 +"}),
    "wrong types": adding({"x": "i + s"}),
    "row id": adding({"x": "_rowid"}),
    "division by zero": adding({"x": "100 / (i - 1)"}),
    "cast": adding({"x": "cast(concat('x', s) as int)"}),
    "a new column in another": adding({"x": "i + 1", "y": "x + 1"}),
    "no text": adding({"x": 1}),
    "nothing": adding(None),
    "a number": adding(7),
    "an aggregate": adding({"x": "sum(i)"}),
    "a child by expression": adding({"st": "named_struct('c', i)"}),
    "batches of none": adding({"x": "i"}, batch_size=0),
    "batches of less": adding({"x": "i"}, batch_size=-1),
    "batches of seven": adding({"x": "i"}, batch_size=7),
    "function without decoration": adding(halves),
    "function with schema": adding(udf(halves, HALVES)),
    "function of a column": adding(udf(halves), read_columns=["f"]),
    "function in batches": adding(udf(lambda batch: pa.record_batch({"u": batch["i"]})), batch_size=7),
    "function of row ids": adding(
        udf(lambda batch: pa.record_batch({"u": batch["_rowid"], "a": batch["_rowaddr"]})),
        read_columns=["_rowid", "_rowaddr"],
    ),
    "function of a nested column": adding(udf(halves), read_columns=["st.a"]),
    "function of an unknown column": adding(udf(halves), read_columns=["zz"]),
    "plain function of an unknown column": adding(halves, read_columns=["zz"]),
    "function of a column twice": adding(udf(halves), read_columns=["i", "i"]),
    "function of no column": adding(udf(lambda batch: batch.select([]))),
    "function of too few rows": adding(udf(lambda batch: pa.record_batch({"u": pa.array([1])}))),
    "function of too many rows": adding(udf(lambda batch: pa.record_batch({"u": range(batch.num_rows + 1)}))),
    "function that fails": adding(failing_after(0)),
    "function that fails later": adding(failing_after(2)),
    "function of other columns": adding(udf(halves, pa.schema([("v", pa.float64())]))),
    "function of another type": adding(udf(halves, pa.schema([("u", pa.float32())]))),
    "function of a column that is there": adding(udf(lambda batch: batch.append_column("n", batch["i"]))),
    "function of what is not null": adding(udf(halves, pa.schema([pa.field("u", pa.float64(), False)]))),
    "function with metadata": adding(udf(lambda batch: halves(batch).cast(NOTED), NOTED)),
    "function with a null": adding(
        udf(lambda batch: pa.record_batch([pa.nulls(batch.num_rows, pa.float64())], schema=NOTED))
    ),
    "function for a struct": adding(udf(lambda batch: pa.record_batch({"st": [{"c": 1}] * batch.num_rows}))),
    "function for all of a struct": adding(udf(lambda batch: pa.record_batch({"st": batch["st"]}))),
    "too much data": adding(rows(100)),
    "one row less": adding(rows(ROWS - 1)),
    "one row more": adding(rows(ROWS + 1)),
    "no rows": adding(rows(0)),
    "reader": adding(Made(lambda _: rows(ROWS).to_reader(5))),
    "iterator": adding(Made(lambda _: iter(rows(ROWS).to_batches(7))), reader_schema=rows(1).schema),
    "iterator without schema": adding(Made(lambda _: iter(rows(ROWS).to_batches()))),
    "iterator of other columns": adding(rows(ROWS).to_batches(), reader_schema=pa.schema([("q", pa.int64())])),
    "iterator of another type": adding(rows(ROWS).to_batches(), reader_schema=pa.schema([("r", pa.int32())])),
    "data that is there": adding(rows(ROWS, i=range(ROWS))),
    "data of a struct": adding(pa.table({"st": [{"c": i} for i in range(ROWS)]})),
    "data with metadata": adding(pa.table([np.ones(ROWS)], schema=NOTED)),
    "every type": adding(EVERY_TYPE),
    "nulls with metadata": adding(pa.schema([pa.field("n", pa.int8(), metadata={"a": "b"})], metadata={"q": "r"})),
    "nulls of every type": adding(EVERY_TYPE.schema),
    "a list of nulls": adding([pa.field("z", pa.int8()), CHILD]),
    "a list with a text": adding([pa.field("z", pa.int8()), "x"]),
    "an empty list": adding([]),
    "an empty schema": adding(pa.schema([])),
    "nulls of a required field": adding(pa.field("n", pa.int8(), False)),
    "nulls of an extension type": adding(pa.field("u", pa.uuid())),
    "nulls of a struct that is there": adding(pa.field("st", pa.struct([("a", pa.int64())]))),
    "nulls of another type": adding(pa.field("i", pa.string())),
    "nulls twice": adding([pa.field("n", pa.int8()), pa.field("n", pa.int8())]),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.filterwarnings("ignore:.*legacy:UserWarning")
def test_both_do_the_same_in_every_version(
    tables: Callable[[str], Path], tmp_path: Path, name: str, version: str
) -> None:
    assert_same_change(tables(version), tmp_path, EVERYWHERE[name])


@pytest.mark.parametrize("name", CASES)
def test_both_do_the_same(tables: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    assert_same_change(tables("2.2"), tmp_path, CASES[name])


def test_a_reference_column_has_no_metadata(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("i", pa.int64(), False, {"m": "1"})])
    lance.write_dataset(pa.table([[1, 2]], schema=schema), tmp_path / "t")
    assert_same_change(tmp_path / "t", tmp_path, adding({"x": "i", "y": "i + 1"}))


def test_a_reference_column_keeps_its_type(tmp_path: Path) -> None:
    table = pa.table(
        {
            "d": pa.array(["a", None, "b"]).dictionary_encode(),
            "h": pa.array([1, 2, None], pa.float16()),
            "st": pa.array([{"d": "x"}, None, {"d": "y"}], pa.struct([("d", pa.dictionary(pa.int8(), pa.string()))])),
        }
    )
    lance.write_dataset(table, tmp_path / "t")
    assert_same_change(tmp_path / "t", tmp_path, adding({"x": "d", "y": "(h)", "z": "`st`.`d`", "w": "st"}))


def test_a_struct_is_null_where_no_file_has_a_value(tmp_path: Path) -> None:
    values = pa.array([{"a": 1}, None, {"a": 3}, None, {"a": None}, None])
    lance.write_dataset(pa.table({"i": range(6), "st": values}), tmp_path / "t", data_storage_version="2.2")
    more = pa.array([{"c": 1}, {"c": 2}, None, None, {"c": 5}, {"c": None}], pa.struct([("c", pa.int32())]))
    found = assert_same_change(tmp_path / "t", tmp_path, adding(pa.table({"st": more})))
    assert isinstance(found, pa.Table)
    assert found["st"].null_count == 1


def test_structs_in_older_files_get_no_values(tmp_path: Path) -> None:
    path = example(tmp_path / "t", "2.2")
    table = lance.dataset(path).to_table()
    lance_dataset.write_dataset(table, path, mode="append", data_storage_version="2.1")
    dataset = lance_dataset.dataset(path)
    before = len(list((path / "data").iterdir()))
    with pytest.raises(UnsupportedError, match=r"2\.1.*compact"):
        dataset.add_columns({"st": "named_struct('c', i)"})
    assert len(list((path / "data").iterdir())) == before
    dataset.add_columns(CHILD)
    dataset.add_columns({"x": "i"})
    assert lance.dataset(path).to_table().equals(dataset.to_table())


@pytest.mark.parametrize("delete", [None, "i = 1"])
def test_required_fields_of_null_structs(tmp_path: Path, delete: str | None) -> None:
    """Adding fields to null structs with required fields raises an error.

    The reference cannot read a null struct with a required field.
    """
    inner = pa.struct([pa.field("x", pa.int64(), False)])
    kind = pa.struct([pa.field("x", pa.int64(), False), ("in", inner)])
    values = [{"x": 1, "in": {"x": 1}}, None, {"x": 3, "in": None}]
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(pa.table({"i": range(3), "s": pa.array(values, kind)}), path)
    if delete is not None:
        dataset.delete(delete)
    rows = dataset.count_rows()
    before = sorted(path.rglob("*"))
    for new in ({"y": 7}, {"in": {"y": 7}}):
        with pytest.raises(InvalidInputError, match="null structs"):
            dataset.add_columns(pa.table({"s": [new] * rows}))
    assert sorted(path.rglob("*")) == before
    dataset.alter_columns({"path": "s.x", "nullable": True}, {"path": "s.in.x", "nullable": True})
    dataset.add_columns(pa.table({"s": [{"y": 7, "in": {"y": 8}}] * rows}))
    read = lance.dataset(path).to_table()
    assert read.to_pydict() == dataset.to_table().to_pydict()
    assert read["s"][-1].as_py() == {"x": 3, "in": {"x": None, "y": 8}, "y": 7}


def test_children_of_lists_are_null_only(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"l": [[{"a": 1}], None]}), tmp_path / "t", data_storage_version="2.2")
    child = pa.list_(pa.struct([("c", pa.int8())]))
    assert_same_change(tmp_path / "t", tmp_path, adding(pa.field("l", child)))
    with pytest.raises(UnsupportedError, match="list"):
        lance_dataset.dataset(tmp_path / "t").add_columns(pa.table({"l": pa.array([[{"c": 1}], None], child)}))


def test_tables_without_rows(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"i": pa.array([], pa.int64())}), tmp_path / "t")
    for number, added in enumerate([{"x": "i"}, pa.field("n", pa.int8()), rows(0), udf(halves, HALVES), halves]):
        (tmp_path / str(number)).mkdir()
        assert_same_change(tmp_path / "t", tmp_path / str(number), adding(added))


def test_lineage_is_that_of_the_reference(tmp_path: Path) -> None:
    path = example(tmp_path / "t", "2.2", enable_stable_row_ids=True)
    columns = ["i", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found = []
    for module in (lance, lance_dataset):
        assert_same_change(path, tmp_path / f"{module.__name__}-both", adding({"x": "i + 1"}))
        copy = tmp_path / f"{module.__name__}-both" / ("ours" if module is lance_dataset else "theirs")
        module.dataset(copy).add_columns(pa.field("n", pa.int8()))
        found.append(lance.dataset(copy).to_table(columns=columns))
        assert lance_dataset.dataset(copy).to_table(columns=columns).equals(found[-1])
    assert found[0].equals(found[1])
    assert set(found[0]["_row_last_updated_at_version"].to_pylist()) == {3}


def test_reserved_names_are_refused(tables: Callable[[str], Path]) -> None:
    dataset = lance_dataset.dataset(tables("2.2"))
    for added in ({"_rowid": "i"}, pa.field("_rowaddr", pa.uint64())):
        with pytest.raises(SchemaError, match="reserved"):
            dataset.add_columns(added)
    with pytest.raises(InvalidInputError, match="nullable"):
        dataset.add_columns(pa.field("st", pa.struct([pa.field("c", pa.int8(), False)])))


def test_data_frames(tables: Callable[[str], Path], tmp_path: Path) -> None:
    path = example(tmp_path / "t", "2.2")
    dataset = lance_dataset.dataset(path)
    dataset.add_columns(lambda batch: pd.DataFrame({"p": batch.to_pandas()["i"] * 2}))
    schema = pa.schema([("q", pa.int16())])
    dataset.add_columns(lance_dataset.batch_udf(schema)(lambda batch: pd.DataFrame({"q": batch.to_pandas()["i"]})))
    dataset.add_columns(pd.DataFrame({"r": np.arange(ROWS)}))
    found = lance.dataset(path).to_table(columns=["i", "p", "q", "r"])
    assert found["p"].to_pylist() == [2 * i for i in found["i"].to_pylist()]
    assert found["q"].equals(found["i"].cast(pa.int16()))
    assert found["r"].to_pylist() == list(range(ROWS))
    assert dataset.schema.metadata == {b"made": b"here"}


def test_a_function_sees_live_rows_as_users_do(tmp_path: Path) -> None:
    table = pa.table({"j": pa.array(['{"a":1}', None, '{"b":2}'], pa.json_()), "i": [1, 2, 3]})
    lance.write_dataset(table, tmp_path / "t").delete("i = 2")
    seen = []
    dataset = lance_dataset.dataset(tmp_path / "t")
    dataset.add_columns(lambda batch: (seen.append(batch), pa.record_batch({"n": batch["i"]}))[1])
    assert [batch.to_pylist() for batch in seen] == [[{"j": '{"a":1}', "i": 1}, {"j": '{"b":2}', "i": 3}]]
    assert lance.dataset(tmp_path / "t").to_table(columns=["n"])["n"].to_pylist() == [1, 3]


def test_blobs_are_read_as_values(tmp_path: Path) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([range(3), [b"abc", None, b"defg"]], schema=pa.schema([("i", pa.int64()), blob]))
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.1")
    assert_same_change(tmp_path / "t", tmp_path, adding({"copy": "b", "missing": "b is null"}))
    found = lance.dataset(tmp_path / "ours").to_table(columns=["copy", "missing"])
    assert found.to_pydict() == {"copy": [b"abc", None, b"defg"], "missing": [False, True, False]}


# -- other writers -----------------------------------------------------------------------------------------------


def test_expressions_and_nulls_are_added_on_top_of_what_others_did(tmp_path: Path) -> None:
    path = example(tmp_path / "t", "2.2")
    first, second = lance_dataset.dataset(path), lance_dataset.dataset(path)
    lance.write_dataset(lance.dataset(path).to_table().slice(0, 5), path, mode="append")
    lance.dataset(path).delete("i = 7")
    first.add_columns({"x": "i + 1"})
    second.add_columns(pa.field("n", pa.int8()))
    found = lance.dataset(path).to_table(columns=["i", "x", "n"])
    assert found.num_rows == ROWS + 4
    assert found["x"].to_pylist() == [i + 1 for i in found["i"].to_pylist()]
    assert (first.version, second.version) == (5, 6)
    with pytest.raises(InvalidInputError, match="already exists"):
        lance_dataset.dataset(path, version=2).add_columns({"x": "i"})


def test_functions_and_data_are_not_asked_again(tmp_path: Path) -> None:
    path = example(tmp_path / "t", "2.2")
    for added in (halves, rows(ROWS)):
        dataset = lance_dataset.dataset(path, version=2)
        lance.dataset(path).delete(f"i = {10 + lance.dataset(path).version}")
        before = {file.name for file in (path / "data").iterdir()}
        with pytest.raises(CommitConflictError) as caught:
            dataset.add_columns(added)
        assert caught.value.retryable
        assert {file.name for file in (path / "data").iterdir()} == before


# -- checkpoints -------------------------------------------------------------------------------------------------


class Counting:
    """A function that records the rows it was called for, and can fail at a given row."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.rows: list[int] = []
        self.fail_at = fail_at

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids = batch["i"].to_pylist()
        if self.fail_at in ids:
            raise RuntimeError("a crash")
        self.rows += ids
        return pa.record_batch({"u": pa.array([10 * i for i in ids], pa.int64())})


def assert_backfilled(path: Path) -> None:
    found = lance.dataset(path).to_table(columns=["i", "u"])
    assert found["u"].to_pylist() == [10 * i for i in found["i"].to_pylist()]


def backfill(dataset: Any, function: Any, checkpoint: Path, **options: Any) -> None:
    udf_of = lance_dataset.batch_udf(checkpoint_file=checkpoint)
    dataset.add_columns(udf_of(function), read_columns=["i"], batch_size=15, **options)


def test_a_second_call_computes_what_is_missing(tmp_path: Path) -> None:
    path, checkpoint = example(tmp_path / "t", "2.2"), tmp_path / "checkpoint"
    first, second = Counting(fail_at=70), Counting()
    with pytest.raises(InvalidInputError, match="RuntimeError: a crash"):
        backfill(lance_dataset.dataset(path), first, checkpoint)
    assert lance.dataset(path).version == 2
    backfill(lance_dataset.dataset(path), second, checkpoint)
    assert not set(first.rows) & set(second.rows)
    assert len(first.rows) + len(second.rows) == ROWS
    assert_backfilled(path)
    assert not checkpoint.exists()
    assert len(list((path / "data").iterdir())) == 6


def test_a_call_after_a_kill_goes_on(tmp_path: Path) -> None:
    path, checkpoint = example(tmp_path / "t", "2.2"), tmp_path / "checkpoint"
    script = f"""
        import os, signal, sys
        import lance_dataset, pyarrow as pa
        def function(batch):
            ids = batch["i"].to_pylist()
            if 60 in ids:
                os.kill(os.getpid(), signal.SIGKILL)
            with open({str(tmp_path / "seen")!r}, "a") as out:
                out.write("".join(f"{{i}}\\n" for i in ids))
            return pa.record_batch({{"u": pa.array([10 * i for i in ids])}})
        udf = lance_dataset.batch_udf(checkpoint_file={str(checkpoint)!r})(function)
        lance_dataset.dataset({str(path)!r}).add_columns(udf, read_columns=["i"], batch_size=15)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, env=dict(os.environ))
    assert ended.returncode == -signal.SIGKILL
    before = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert before[-1] > 40, "a whole fragment and some batches were done"
    assert lance.dataset(path).to_table().num_rows == ROWS
    function = Counting()
    backfill(lance_dataset.dataset(path), function, checkpoint)
    assert sorted(before + function.rows) == lance.dataset(path).to_table(columns=["i"])["i"].to_pylist()
    assert_backfilled(path)


def test_results_count_for_the_same_rows_only(tmp_path: Path) -> None:
    """A checkpoint is ignored if it belongs to another table, other deletions, other columns or other batches."""
    path, checkpoint = example(tmp_path / "t", "2.2"), tmp_path / "checkpoint"
    other = example(tmp_path / "other", "2.2")
    with pytest.raises(InvalidInputError):
        backfill(lance_dataset.dataset(path), Counting(fail_at=70), checkpoint)
    kept = checkpoint.read_bytes()
    function = Counting()
    backfill(lance_dataset.dataset(other), function, checkpoint)
    assert len(function.rows) == ROWS
    assert_backfilled(other)

    checkpoint.write_bytes(kept)
    lance.dataset(path).delete("i in (1, 41)")
    lance.write_dataset(lance.dataset(path).to_table().slice(0, 5), path, mode="append")
    function = Counting()
    backfill(lance_dataset.dataset(path), function, checkpoint)
    assert len(function.rows) == ROWS - 2 + 5
    assert_backfilled(path)


def test_fragments_that_stayed_the_same_are_kept_over_a_conflict(tmp_path: Path) -> None:
    path, checkpoint = example(tmp_path / "t", "2.2"), tmp_path / "checkpoint"
    stale = lance_dataset.dataset(path)
    lance.write_dataset(lance.dataset(path).to_table().slice(0, 5), path, mode="append")
    with pytest.raises(CommitConflictError):
        backfill(stale, Counting(), checkpoint)
    function = Counting()
    backfill(lance_dataset.dataset(path), function, checkpoint)
    assert len(function.rows) == 5
    assert_backfilled(path)


def test_a_lost_file_or_another_id_is_computed_again(tmp_path: Path) -> None:
    path, checkpoint = example(tmp_path / "t", "2.2"), tmp_path / "checkpoint"
    with pytest.raises(InvalidInputError):
        backfill(lance_dataset.dataset(path), Counting(fail_at=85), checkpoint)
    with sqlite3.connect(checkpoint) as connection:
        texts = dict(connection.execute("SELECT fragment_id, data FROM fragments"))
    connection.close()
    assert sorted(texts) == [0, 1]
    (path / "data" / json.loads(texts[0])["files"][-1]["path"]).unlink()
    function = Counting()
    with pytest.raises(InvalidInputError):
        backfill(lance_dataset.dataset(path), Counting(fail_at=85), checkpoint)
    lance.dataset(path).add_columns({"x": "i"})  # takes the id of the new column
    backfill(lance_dataset.dataset(path), function, checkpoint)
    assert len(function.rows) == ROWS, "its files are not those of the fragments as they are now"
    assert_backfilled(path)


def test_what_the_reference_began_is_finished(tmp_path: Path) -> None:
    path, checkpoint = example(tmp_path / "t", "2.2"), tmp_path / "checkpoint"
    theirs = lance.batch_udf(checkpoint_file=checkpoint)(Counting(fail_at=85))
    with pytest.raises(OSError, match="a crash"):
        lance.dataset(path).add_columns(theirs, read_columns=["i"], batch_size=15)
    function = Counting()
    backfill(lance_dataset.dataset(path), function, checkpoint)
    assert min(function.rows) == 80, "the fragments that were done stay"
    assert_backfilled(path)


def test_damaged_checkpoints_are_named(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.write_bytes(b"no database at all" * 100)
    with pytest.raises(CorruptFileError, match="checkpoint"):
        lance_dataset.batch_udf(checkpoint_file=checkpoint)(halves)
    checkpoint.unlink()
    path = example(tmp_path / "t", "2.2")
    with pytest.raises(InvalidInputError):
        backfill(lance_dataset.dataset(path), Counting(fail_at=30), checkpoint)
    with sqlite3.connect(checkpoint) as connection:
        connection.execute("UPDATE results SET result = ?", (b"rubbish",))
    connection.close()
    with pytest.raises(CorruptFileError, match="damaged"):
        backfill(lance_dataset.dataset(path), Counting(), checkpoint)


def test_checkpoints_in_use_are_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is locked, was made by another program, or lies in a missing folder raises `StorageError`."""
    monkeypatch.setattr(udf_module, "_PATIENCE", 0.05)
    checkpoint = BatchUDFCheckpoint(tmp_path / "checkpoint")
    other = sqlite3.connect(tmp_path / "checkpoint", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for use in (lambda: checkpoint.insert_fragment(1, "{}"), lambda: checkpoint.get_fragment(1)):
        with pytest.raises(StorageError, match="another process or thread is using it"):
            use()
    other.execute("ROLLBACK")
    checkpoint.insert_fragment(1, "{}")
    other.execute("DROP TABLE fragments")
    other.close()
    with pytest.raises(StorageError, match="another program"):
        checkpoint.get_fragment(1)
    with pytest.raises(StorageError, match="its folder must exist"):
        BatchUDFCheckpoint(tmp_path / "nowhere" / "checkpoint")


def test_checkpoint_files_by_themselves(tmp_path: Path) -> None:
    checkpoint = BatchUDFCheckpoint(tmp_path / "checkpoint")
    batch = pa.record_batch({"x": [1, 2]})
    info = BatchUDFCheckpoint.BatchInfo(1, 2)
    assert checkpoint.get_batch(info) is None
    assert checkpoint.get_fragment(1) is None
    checkpoint.insert_batch(info, batch)
    assert checkpoint.get_batch(info) == batch
    assert checkpoint.get_batch(info._replace(batch_index=3)) is None
    assert checkpoint.get_batch(info._replace(source="other")) is None
    checkpoint.insert_fragment(1, "{}")
    assert checkpoint.get_fragment(1) == "{}"
    assert checkpoint.get_batch(info) is None
    checkpoint.cleanup()
    checkpoint.cleanup()
    assert not (tmp_path / "checkpoint").exists()


def test_transforms_are_normalized_as_in_the_reference(tables: Callable[[str], Path]) -> None:
    dataset = lance_dataset.dataset(tables("2.2"))
    assert normalize_transform({"a": "i"}, dataset) == {"a": "i"}
    made = normalize_transform(halves, dataset, ["i"])
    assert isinstance(made, BatchUDF)
    assert made.output_schema == HALVES
    assert made.cache is None
    reader = normalize_transform(rows(3), dataset)
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all() == rows(3)
    for wrong in (None, pa.field("n", pa.int8()), {"x": 1}, lambda batch: 1 / 0):
        with pytest.raises(TypeError):
            normalize_transform(wrong, dataset)
        with pytest.raises(TypeError):
            lance.udf.normalize_transform(wrong, lance.dataset(tables("2.2")))


def test_streams_are_read_as_needed(tmp_path: Path) -> None:
    """A stream is read while files are written: most files exist before the stream ends."""
    path = tmp_path / "t"
    lance.write_dataset(pa.table({"i": range(2000)}), path, max_rows_per_file=100)
    asked: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 2000, 50):
            asked.append(len(list((path / "data").iterdir())))
            yield pa.record_batch({"r": pa.array(range(start, start + 50))})

    lance_dataset.dataset(path).add_columns(batches(), reader_schema=pa.schema([("r", pa.int64())]))
    assert asked == sorted(asked)
    assert asked[-1] > 30, "most files are written before the stream ends"
    found = lance.dataset(path).to_table()
    assert found["r"].equals(found["i"])
