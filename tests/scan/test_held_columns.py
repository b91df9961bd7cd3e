"""Tests of columns of remote files that are fetched with few requests and held while they are decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.stores.s3_proxy import Proxy, proxied
from support.stores.s3_server import S3Server

import lance_dataset
from lance_dataset.errors import CorruptFileError
from lance_dataset.io.held import HeldParts
from lance_dataset.read.holding import is_worth_all

_FRAGMENTS, _ROWS = 12, 5_000


@pytest.fixture(scope="module")
def data() -> pa.Table:
    numbers = np.random.default_rng(1).integers(0, 1 << 40, (3, _FRAGMENTS * _ROWS))
    columns = {f"n{number}": values for number, values in enumerate(numbers)}
    texts = pa.array([f"text {number}" for number in numbers[0]])
    pairs = pa.StructArray.from_arrays([pa.array(numbers[1]), texts], ["a", "b"])
    return pa.table({"id": np.arange(_FRAGMENTS * _ROWS), **columns, "s": texts, "pair": pairs})


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    with proxied(s3_server) as found:
        yield found


@pytest.fixture(scope="module", params=["2.0", "2.2"])
def uri(request: pytest.FixtureRequest, s3_server: S3Server, data: pa.Table) -> str:
    uri = f"s3://{s3_server.new_bucket()}/d.lance"
    lance_dataset.write_dataset(
        data, uri, max_rows_per_file=_ROWS, data_storage_version=request.param, storage_options=s3_server.options
    )
    return uri


@pytest.mark.parametrize(
    ("scan", "columns", "requests"),
    [
        (lambda dataset: dataset.to_table(), None, 1),
        (lambda dataset: pa.Table.from_batches(dataset.to_batches()), None, 1),
        (lambda dataset: dataset.to_table(columns=["n1", "pair"]), ["n1", "pair"], 3),
        (lambda dataset: dataset.to_table(filter="n1 >= 0"), None, 4),
    ],
    ids=["table", "batches", "columns", "filter"],
)
def test_requests(
    proxy: Proxy,
    uri: str,
    data: pa.Table,
    scan: Callable[[Any], pa.Table],
    columns: list[str] | None,
    requests: int,
) -> None:
    """Every file takes one request if most of it is wanted, and otherwise one more for neighbouring columns."""
    dataset = lance_dataset.dataset(uri, storage_options=proxy.server.options, session=lance_dataset.Session())
    proxy.requests.clear()
    assert scan(dataset) == (data if columns is None else data.select(columns))
    files = Counter(path for _, path, _ in proxy.requests if "/data/" in path)
    assert len(files) == _FRAGMENTS
    # the first file tells how much of the others is read
    assert sorted(files.values())[-2] <= requests
    assert all(not file.source._held._parts for file in _open_files(dataset))


def test_takes(s3_server: S3Server, proxy: Proxy, data: pa.Table) -> None:
    """The first take from a small file needs one request for it."""
    uri, rows = f"s3://{s3_server.new_bucket()}/d.lance", [3, 100, 1_900, 2_100, 4_999]
    few = data.slice(0, 5_000)
    lance_dataset.write_dataset(few, uri, max_rows_per_file=1_000, storage_options=s3_server.options)
    for columns in (None, ["n1", "s"], ["pair"]):
        dataset = lance_dataset.dataset(uri, storage_options=proxy.server.options, session=lance_dataset.Session())
        proxy.requests.clear()
        wanted = few if columns is None else few.select(columns)
        assert dataset.take(rows, columns=columns) == wanted.take(rows)
        assert proxy.count(text="/data/") == 4
        assert all(not file.source._held._parts for file in _open_files(dataset))


def test_batches_may_be_left(s3_server: S3Server, uri: str, data: pa.Table) -> None:
    """A stream of batches that ends early holds nothing afterwards."""
    dataset = lance_dataset.dataset(uri, storage_options=s3_server.options, session=lance_dataset.Session())
    batches = dataset.to_batches(batch_size=1_000)
    assert next(batches)["id"].to_pylist() == list(range(1_000))
    batches.close()
    assert all(not file.source._held._parts for file in _open_files(dataset))


def _open_files(dataset: lance_dataset.LanceDataset) -> list[Any]:
    return [file for fragment in dataset.snapshot.reader.fragments for file in fragment._files.values()]


def test_a_missing_file_is_reported(s3_server: S3Server) -> None:
    uri = f"s3://{s3_server.new_bucket()}/d.lance"
    options = s3_server.options
    lance_dataset.write_dataset(pa.table({"a": range(100)}), uri, max_rows_per_file=10, storage_options=options)
    bucket = uri.split("/")[2]
    gone = next(key for key in s3_server.keys(bucket) if "/data/" in key)
    s3_server.client().delete_object(Bucket=bucket, Key=gone)
    for scan in (lambda dataset: dataset.to_table(), lambda dataset: list(dataset.to_batches())):
        dataset = lance_dataset.dataset(uri, storage_options=options, session=lance_dataset.Session())
        with pytest.raises(FileNotFoundError, match=gone.rpartition("/")[2]):
            scan(dataset)


def test_a_replaced_file_is_reported(s3_server: S3Server) -> None:
    """A file that is fetched as a whole must have the size that the manifest says."""
    uri = f"s3://{s3_server.new_bucket()}/d.lance"
    options = s3_server.options
    lance_dataset.write_dataset(pa.table({"a": range(100)}), uri, max_rows_per_file=10, storage_options=options)
    bucket = uri.split("/")[2]
    key = [key for key in s3_server.keys(bucket) if "/data/" in key][-1]
    s3_server.client().put_object(Bucket=bucket, Key=key, Body=b"x" * 10_000)
    dataset = lance_dataset.dataset(uri, storage_options=options, session=lance_dataset.Session())
    with pytest.raises(CorruptFileError, match="its manifest says"):
        dataset.to_table()


def test_parts() -> None:
    """A range is found if one part has all of it, whoever holds that, until the last one lets go of it."""
    held, content = HeldParts(), bytes(range(100))
    first = held.hold([(10, pa.py_buffer(content[10:30])), (50, pa.py_buffer(content[50:60]))])
    second = held.hold([(20, pa.py_buffer(content[20:40]))])
    found = held.find(12, 10)
    assert found is not None
    assert found.to_pybytes() == content[12:22]
    assert not held.has(15, 20)
    assert held.missing([(0, 5), (6, 3), (12, 3), (55, 0), (58, 4)], 2, 100) == [(0, 9), (58, 4)]
    first()
    assert not held.has(12, 10)
    assert held.has(22, 10)
    first()
    second()
    assert not held.has(22, 10)


def test_whole_files() -> None:
    """A file is fetched as a whole if little of that is unwanted."""
    assert is_worth_all(1.0)(4 << 20)
    assert not is_worth_all(1.0)(5 << 20)
    assert is_worth_all(0.0)(128 << 10)
    assert not is_worth_all(0.0)(129 << 10)
    assert not is_worth_all(1.0, 1 << 10)(2 << 10)
