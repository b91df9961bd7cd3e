"""Tests of collected source rows of a merge: they come back unchanged, from memory and from disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.changes.keys.source import Source
from lance_dataset.errors import FieldNotFoundError, RowIndexError, SchemaError, StorageError
from lance_dataset.read.spool import Spool

UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)))
SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64(), metadata={"is": "a number"}),
        ("text", pa.string()),
        ("codes", pa.dictionary(pa.int8(), pa.string())),
        ("lists", pa.list_(pa.struct([("a", pa.int32())]))),
        ("uuid", pa.uuid()),
        ("flag", pa.bool_()),
    ],
    {"schema": "metadata"},
)
BUDGETS = pytest.mark.parametrize("budget", [1 << 30, 20_000, 0], ids=["in memory", "spilled late", "spilled"])


def rows(start: int, count: int) -> pa.RecordBatch:
    """Return a batch with its own dictionary."""
    numbers = list(range(start, start + count))
    codes = pa.array([None if n % 7 == 0 else f"code {(n + start) % 5}" for n in numbers])
    arrays = [
        pa.array(numbers),
        pa.array([None if n % 5 == 0 else f"text {n}" for n in numbers]),
        codes.dictionary_encode().cast(SCHEMA.field("codes").type),
        pa.array([None if n % 3 == 0 else [{"a": n}] * (n % 4) for n in numbers], SCHEMA.field("lists").type),
        UUIDS.take(pa.array([n % 3 for n in numbers], pa.int64())),
        pa.array([n % 2 == 0 for n in numbers]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def stream() -> Iterator[pa.RecordBatch]:
    start = 0
    for count in (1, 0, 20, 8200, 3, 3, 900, 100):
        yield rows(start, count + 2).slice(1, count)
        start += count


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(stream(), SCHEMA)


@BUDGETS
def test_what_was_collected_comes_back(budget: int, table: pa.Table) -> None:
    with Source.collect(stream(), SCHEMA, budget=budget) as source:
        assert source.is_spilled == (budget < 1 << 30)
        assert source.schema.equals(SCHEMA, check_metadata=True)
        assert source.num_rows == table.num_rows
        for _ in range(2):
            found = pa.Table.from_batches(source.batches())
            assert found.schema.equals(SCHEMA, check_metadata=True)
            assert found.to_pydict() == table.to_pydict()
        small = list(source.batches(["flag", "text"], 700))
        assert max(batch.num_rows for batch in small) == 700
        assert pa.Table.from_batches(small).equals(table.select(["flag", "text"]))
        for name in SCHEMA.names:
            assert source.column(name).to_pylist() == table.column(name).to_pylist()


@BUDGETS
@pytest.mark.parametrize("count", [0, 1, 50, 7000])
def test_rows_are_taken_in_any_order(budget: int, count: int, table: pa.Table) -> None:
    numbers = np.random.default_rng(count).integers(0, table.num_rows, count)
    with Source.collect(stream(), SCHEMA, budget=budget) as source:
        taken = source.take(numbers)
        assert taken.schema.equals(SCHEMA, check_metadata=True)
        assert taken.num_rows == count
        for name in SCHEMA.names:
            assert taken.column(name).to_pylist() == table.column(name).take(pa.array(numbers)).to_pylist()
        assert source.take(numbers, ["flag", "number"]).schema.names == ["flag", "number"]
        assert source.take(numbers, []).num_rows == count


@BUDGETS
def test_sources_without_rows(budget: int) -> None:
    for batches in ([], [rows(0, 0)]):
        with Source.collect(batches, SCHEMA, budget=budget) as source:
            assert (source.num_rows, source.is_spilled, list(source.batches())) == (0, False, [])
            assert len(source.column("text")) == 0
            assert source.take(np.empty(0, np.int64)).num_rows == 0


def test_arrays_outlive_their_source(table: pa.Table) -> None:
    source = Source.collect(stream(), SCHEMA, budget=0)
    column, taken = source.column("text"), source.take(np.array([5, 1]))
    source.release()
    source.close()
    source.close()
    assert column.equals(table.column("text"))
    assert taken.column("number").to_pylist() == table.column("number").take(pa.array([5, 1])).to_pylist()


@BUDGETS
def test_views_become_plain(budget: int) -> None:
    nested = pa.struct([("s", pa.list_(pa.string_view()))])
    schema = pa.schema([("view", pa.string_view()), ("bytes", pa.binary_view()), ("nested", nested)])
    values = {
        "view": ["a" * 20, None, ""],
        "bytes": [b"b" * 20, b"", None],
        "nested": [{"s": ["x"]}, None, {"s": None}],
    }
    batch = pa.RecordBatch.from_pydict(values, schema)
    with Source.collect([batch, batch.slice(1)], schema, budget=budget) as source:
        assert source.schema.field("view").type == pa.large_string()
        assert source.take(np.array([3, 0])).to_pydict() == {name: [each[1], each[0]] for name, each in values.items()}


def test_mistakes() -> None:
    with pytest.raises(SchemaError, match="other columns"):
        Source.collect([rows(0, 3).select(["number"])], SCHEMA)
    with Source.collect([rows(0, 3)], SCHEMA) as source:
        with pytest.raises(FieldNotFoundError, match="did you mean 'text'"):
            source.column("texts")
        with pytest.raises(FieldNotFoundError):
            source.take(np.array([0]), ["none"])
        for numbers in ([3], [-1], [0, 2**40]):
            with pytest.raises(RowIndexError):
                source.take(np.array(numbers))


# -- the temporary file ------------------------------------------------------------------------------------------


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return found


def test_nothing_is_left_behind(scratch: Path) -> None:
    with Source.collect(stream(), SCHEMA, budget=0) as source:
        assert source.is_spilled
        assert os.listdir(scratch) == []
        assert not any(str(scratch) in name for name in descriptors())


def test_nothing_is_left_behind_by_a_stream_that_fails(scratch: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from stream()
        assert any(str(scratch) in name for name in descriptors())
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        Source.collect(broken(), SCHEMA, budget=0)
    assert os.listdir(scratch) == []
    assert not any(str(scratch) in name for name in descriptors())


def test_no_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(StorageError, match="TMPDIR"):
        Source.collect(stream(), SCHEMA, budget=0)


def test_a_full_disk() -> None:
    import resource
    import signal

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(StorageError, match="make room"):
            Source.collect(stream(), SCHEMA, budget=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_memory_is_bounded() -> None:
    """Reading a spilled source keeps little of it mapped in this process."""
    count, schema = 60, pa.schema([("number", pa.int64())])
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(1 << 18))], schema=schema)

    def mapped() -> int:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("RssFile", "RssShmem"))) << 10

    with Source.collect([batch] * count, schema, budget=0) as source:
        before, most = mapped(), 0
        for each in source.batches():
            assert each.column(0)[5].as_py() == 5
            assert int(np.asarray(each.column(0)).sum()) > 0
            most = max(most, mapped() - before)
        assert most < 3 * batch.nbytes
        for seed in range(5):
            source.take(np.random.default_rng(seed).integers(0, source.num_rows, 10_000))
            assert mapped() - before < 3 * batch.nbytes


@pytest.mark.parametrize("budget", [1 << 30, 0])
def test_small_batches_are_put_together(budget: int) -> None:
    with Spool(SCHEMA, budget) as spool:
        for start in range(0, 9000, 10):
            spool.add(rows(start, 10))
        batches = spool.seal()
        assert len(batches) < 5
        assert pa.Table.from_batches(batches).column("number").to_pylist() == list(range(9000))


def test_dictionaries_that_do_not_fit_one() -> None:
    """Batches whose dictionaries together exceed the index type keep their own dictionaries."""
    schema = pa.schema([("codes", pa.dictionary(pa.int8(), pa.int64()))])

    def batch(start: int) -> pa.RecordBatch:
        values = pa.array(np.arange(start, start + 100)).dictionary_encode()
        return pa.RecordBatch.from_arrays([values.cast(schema.field(0).type)], schema=schema)

    wanted: list[Any] = list(range(500))
    for budget in (1 << 30, 0):
        with Source.collect([batch(start) for start in range(0, 500, 100)], schema, budget=budget) as source:
            assert source.column("codes").to_pylist() == wanted
            assert source.take(np.array([499, 0, 250])).column(0).to_pylist() == [499, 0, 250]
