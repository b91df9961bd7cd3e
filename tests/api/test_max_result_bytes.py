"""Tests of `max_result_bytes`: results larger than it are refused, and streams have smaller batches."""

from __future__ import annotations

import cProfile
import pickle
import pstats
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.errors import MemoryLimitError, OutOfRangeError

LIMIT = 1 << 20
ROWS = 60_000
TEXT = [f"{number:08}" * (number % 8) for number in range(ROWS)]
TABLE = pa.table(
    {
        "a": np.arange(ROWS),
        "b": np.arange(ROWS) * 2.0,
        "c": np.arange(ROWS)[::-1],
        "s": TEXT,
        "v": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(ROWS * 4, np.float32)), 4),
        "l": pa.array([list(range(number % 5)) for number in range(ROWS)], pa.list_(pa.int64())),
        "d": pa.array(["red", "green", "blue"] * (ROWS // 3)).dictionary_encode(),
    }
)
BLOB = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


#: Pools that were counted; a buffer may outlive the test that allocated it.
_pools: list[pa.MemoryPool] = []


@contextmanager
def counted_memory() -> Iterator[pa.MemoryPool]:
    """Provide a memory pool that counts what is allocated inside."""
    before = pa.default_memory_pool()
    _pools.append(pa.proxy_memory_pool(before))
    pa.set_memory_pool(_pools[-1])
    try:
        yield _pools[-1]
    finally:
        pa.set_memory_pool(before)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "data.lance"
    lance.write_dataset(TABLE, path, max_rows_per_file=25_000, enable_stable_row_ids=True).delete("a % 1000 = 7")
    return path


@pytest.fixture
def limited(path: Path) -> lance.LanceDataset:
    return lance.dataset(path, max_result_bytes=LIMIT)


CALLS: dict[str, Callable[[lance.LanceDataset], Any]] = {
    "whole": lambda data: data.to_table(),
    "text": lambda data: data.to_table(["s"]),
    "lists": lambda data: data.to_table(["l"]),
    "computed": lambda data: data.to_table({"x": "concat(s, 'abcdefghijklmnopqrstuvw')"}),
    "system": lambda data: data.to_table(["_rowid", "a", "b"]),
    "filter": lambda data: data.to_table(filter="a % 3 != 0"),
    "late": lambda data: data.to_table(filter="a % 3 != 0", late_materialization=True),
    "early": lambda data: data.to_table(filter="a % 3 != 0", late_materialization=False),
    "range": lambda data: data.to_table(offset=10, limit=40_000),
    "any order": lambda data: data.to_table(["s"], scan_in_order=False),
    "deleted": lambda data: data.to_table(include_deleted_rows=True, with_row_id=True),
    "sorted": lambda data: data.to_table(order_by=["c"]),
    "sorted text": lambda data: data.to_table(["s"], order_by=["s"]),
    "first sorted": lambda data: data.to_table(order_by=["c"], limit=40_000),
    "sorted stream": lambda data: list(data.to_batches(order_by=["c"])),
    "strict stream": lambda data: list(data.to_batches(batch_size=50_000, strict_batch_size=True)),
    "progress": lambda data: data.to_table(progress=lambda done, total: None),
    "head": lambda data: data.head(40_000),
    "slice": lambda data: data.slice(0, 40_000),
    "pandas": lambda data: data.to_pandas(),
    "take": lambda data: data.take(range(50_000)),
    "take numbers": lambda data: data.take(list(range(50_000)), ["a", "b", "c"]),
    "take text": lambda data: data.take(list(range(50_000)), ["s"]),
    "take often": lambda data: data.take([40_007] * 200_000, ["a"]),
    "take long text often": lambda data: data.take([40_003] * 50_000, ["s"]),
    "take ids": lambda data: data._take_rows(list(range(0, 50_000, 2)), ["a", "s", "l"]),
    "sample": lambda data: data.sample(40_000),
    "fragment": lambda data: data.get_fragments()[0].to_table(),
    "fragment head": lambda data: data.get_fragments()[0].head(20_000),
    "fragment take": lambda data: data.get_fragments()[0].take(list(range(20_000))),
    "fragment take text": lambda data: data.get_fragments()[0].take(list(range(24_000)), ["s", "l"]),
    "scanner": lambda data: data.scanner(["s"]).to_table(),
    "builder": lambda data: lance.ScannerBuilder(data).to_scanner().to_table(),
    "stream into a table": lambda data: pa.table(data.scanner().to_table()),
    "sql": lambda data: data.sql("SELECT * FROM dataset").build().to_batch_records(),
}


@pytest.mark.parametrize("call", CALLS)
def test_results_are_refused(call: str, path: Path, limited: lance.LanceDataset) -> None:
    CALLS[call](lance.dataset(path))  # without a limit nothing is refused
    with pytest.raises(MemoryLimitError, match="more than max_result_bytes=1,048,576; select fewer rows or columns"):
        CALLS[call](limited)


STREAMS: dict[str, dict[str, Any]] = {
    "all": {},
    "filter": {"filter": "a % 3 != 0"},
    "range": {"offset": 10, "limit": 40_000},
    "filtered range": {"filter": "s LIKE '0%'", "limit": 30_000},
    "columns": {"columns": {"x": "concat(s, s)", "a": "a"}},
    "deleted": {"include_deleted_rows": True, "with_row_id": True},
}


@pytest.mark.parametrize("stream", STREAMS)
def test_streams_have_smaller_batches(stream: str, path: Path, limited: lance.LanceDataset) -> None:
    options = STREAMS[stream]
    batches = list(limited.to_batches(batch_size=50_000, **options))
    assert max(batch.nbytes for batch in batches) <= LIMIT
    assert pa.Table.from_batches(batches) == lance.dataset(path).to_table(**options)
    read = limited.scanner(batch_size=50_000, **options).to_reader().read_all()
    assert read.num_rows == sum(batch.num_rows for batch in batches)


def test_small_results(path: Path, limited: lance.LanceDataset) -> None:
    open_ended = lance.dataset(path)
    rows = [0, 59_000, 5, 5, 31_234]
    assert limited.take(rows) == open_ended.take(rows)
    assert limited._take_rows(rows) == open_ended._take_rows(rows)
    assert limited.to_table(filter="a < 1000") == open_ended.to_table(filter="a < 1000")
    assert limited.to_table(order_by=["c"], limit=10) == open_ended.to_table(order_by=["c"], limit=10)
    assert limited.get_fragments()[1].take(rows[2:4]) == open_ended.get_fragments()[1].take(rows[2:4])
    assert limited.count_rows(filter="s LIKE '0%'") == open_ended.count_rows(filter="s LIKE '0%'")
    reader = limited.sql("SELECT * FROM dataset").build().to_stream_reader()
    assert max(batch.nbytes for batch in reader) <= LIMIT


def test_a_row_that_is_too_large(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3], "s": ["x", "y" * 3000, "z"]})
    lance.write_dataset(table, tmp_path / "t")
    limited = lance.dataset(tmp_path / "t", max_result_bytes=2000)
    with pytest.raises(MemoryLimitError, match="row"):
        list(limited.to_batches())
    with pytest.raises(MemoryLimitError):
        limited.take([1])
    assert limited.take([2, 0]).to_pylist() == table.take([2, 0]).to_pylist()
    assert next(limited.to_batches(["a"])).num_rows == 3


def test_the_limit_follows_the_handle(tmp_path: Path, path: Path) -> None:
    lance.write_dataset(TABLE, tmp_path / "t", max_rows_per_file=25_000)
    session = lance.Session()
    first = lance.dataset(tmp_path / "t", session=session)
    opened = lance.dataset(tmp_path / "t", session=session, max_result_bytes=LIMIT)
    opened.tags.create("tag", 1)
    branch = opened.create_branch("branch")
    handles = {
        "class": lance.LanceDataset(tmp_path / "t", max_result_bytes=LIMIT),
        "version": opened.checkout_version(1),
        "tag": opened.checkout_version("tag"),
        "branch": branch,
        "branch with options": opened.create_branch("other", storage_options={"mmap": "false"}),
        "clone": opened.shallow_clone(tmp_path / "shallow", None),
        "copy": opened.deep_clone(tmp_path / "deep", None),
        "pickle": pickle.loads(pickle.dumps(opened)),
        "append": lance.write_dataset(TABLE[:10], opened, mode="append"),
    }
    opened.update_config({"a": "b"})
    handles["commit"] = opened
    for name, handle in handles.items():
        with pytest.raises(MemoryLimitError):
            handle.to_table()
        fragment = handle.get_fragments()[0]
        for each in (fragment, pickle.loads(pickle.dumps(fragment))):
            with pytest.raises(MemoryLimitError):
                each.to_table()
        assert handle.snapshot.location.result_limit.max_bytes == LIMIT, name
    assert first.to_table() == TABLE
    assert opened.shallow_clone(tmp_path / "free", 1, max_result_bytes=None).to_table() == TABLE


def test_blobs(tmp_path: Path) -> None:
    values = [bytes([number]) * 300_000 for number in range(5)]
    table = pa.table({"blob": values}, pa.schema([BLOB]))
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.0")
    limited = lance.dataset(tmp_path / "t", max_result_bytes=LIMIT)
    assert [value for _, value in limited.read_blobs("blob", indices=[4, 0])] == [values[4], values[0]]
    for call in (
        lambda: limited.read_blobs("blob", indices=range(5)),
        lambda: limited.read_blob_ranges("blob", [(0, 0, 300_000)] * 4, selector="indices"),
        lambda: limited.to_table(blob_handling="all_binary"),
        lambda: limited.to_pandas(blob_mode="bytes"),
    ):
        with pytest.raises(MemoryLimitError, match="max_result_bytes"):
            call()
    batches = list(limited.to_batches(blob_handling="all_binary"))
    assert [value for batch in batches for value in batch["blob"].to_pylist()] == values
    small = lance.dataset(tmp_path / "t", max_result_bytes=200_000)
    files = [*small.take_blobs("blob", indices=[1]), small.to_pandas()["blob"][1]]
    for file in files:
        assert file.read(1000) == values[1][:1000]
        for call in (file.readall, lambda file=file: file.read_ranges([(0, 150_000)] * 2)):
            with pytest.raises(MemoryLimitError):
                call()


def test_changed_rows(path: Path) -> None:
    limited = lance.dataset(path, max_result_bytes=100)
    ids = list(limited.delta(begin_version=1, end_version=2).get_deleted_row_ids())
    assert max(batch.nbytes for batch in ids) <= 100
    assert sum(batch.num_rows for batch in ids) == ROWS // 1000


def test_nothing_is_allocated_for_a_planned_result(tmp_path: Path) -> None:
    """A constant column of 80 MB takes a few bytes of a file."""
    lance.write_dataset(pa.table({"a": np.zeros(10_000_000, np.int64)}), tmp_path / "t")
    limited = lance.dataset(tmp_path / "t", max_result_bytes=LIMIT)
    limited.take([1])
    with counted_memory() as pool:
        for call in (
            limited.to_table,
            lambda: limited.to_table(order_by=["a"]),
            lambda: limited.take(np.arange(9_000_000)),
            lambda: limited.get_fragments()[0].to_table(),
        ):
            with pytest.raises(MemoryLimitError):
                call()
        assert pool.max_memory() <= LIMIT
        for batch in limited.to_batches(batch_size=10_000_000):
            assert batch.nbytes <= LIMIT
        assert pool.max_memory() <= 16 * LIMIT


def test_a_large_value_is_refused_before_it_is_allocated(tmp_path: Path) -> None:
    size = 100_000_000
    lance.write_dataset(pa.table({"s": pa.array([b"x" * size], pa.large_binary())}), tmp_path / "t")
    limited = lance.dataset(tmp_path / "t", max_result_bytes=LIMIT)
    with counted_memory() as pool:
        for call in (limited.to_table, lambda: limited.take([0]), lambda: list(limited.to_batches())):
            with pytest.raises(MemoryLimitError):
                call()
        assert pool.max_memory() < size


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, OutOfRangeError), (-1, OutOfRangeError), (1.5, TypeError), ("1", TypeError), (True, TypeError)],
)
def test_arguments(value: object, error: type[Exception], path: Path) -> None:
    with pytest.raises(error, match="max_result_bytes"):
        lance.dataset(path, max_result_bytes=value)  # type: ignore[arg-type]
    assert lance.dataset(path, max_result_bytes=np.int64(1)).count_rows() == ROWS - ROWS // 1000


def test_takes_of_a_row_cost_no_more_calls(path: Path) -> None:
    """Without a limit nothing is called to check it."""
    data = lance.dataset(path)
    for columns in (["a"], ["s"], None):
        data.take([5], columns)
        profile = cProfile.Profile()
        profile.runcall(data.take, [5], columns)
        calls = {name for _, _, name in pstats.Stats(profile).stats}  # type: ignore[attr-defined]
        assert not calls & {"check", "meter", "around", "add", "check_planned", "fits", "check_allocation"}
