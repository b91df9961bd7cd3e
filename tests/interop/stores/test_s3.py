"""Tests of datasets on a real S3 server, written and read by this package and by the reference."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.stores.s3_proxy import LOSE_ANSWER, proxied
from support.stores.s3_server import S3Server

import lance_dataset as ours

WRITERS = [pytest.param(ours, id="ours"), pytest.param(lance, id="reference")]


@pytest.fixture
def uri(s3_server: S3Server) -> str:
    return f"s3://{s3_server.new_bucket()}/some folder/table.lance"


def rows(start: int, count: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "id": numbers,
            "half": numbers / 2,
            "name": [f"name {number}" if number % 7 else None for number in numbers.tolist()],
            "vector": pa.FixedSizeListArray.from_arrays(np.repeat(numbers.astype(np.float32), 4), 4),
            "tags": [[str(number)] * (number % 3) for number in numbers.tolist()],
        }
    )


def check(table: pa.Table, expected: pa.Table) -> None:
    assert table.sort_by("id").combine_chunks().equals(expected.combine_chunks())


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_each_reads_what_the_other_wrote(s3_server: S3Server, uri: str, writer: ModuleType, version: str) -> None:
    options = s3_server.options
    table = rows(0, 5000)
    if version == "0.1":  # which loses nulls
        table = table.drop_columns(["name"])
    expected = pa.concat_tables([table.slice(0, 3000), table.slice(3000)]).filter(pa.compute.field("id") != 17)
    written = writer.write_dataset(
        table.slice(0, 3000), uri, storage_options=options, data_storage_version=version, max_rows_per_file=1000
    )
    writer.write_dataset(table.slice(3000), uri, mode="append", storage_options=options)
    written = writer.dataset(uri, storage_options=options)
    written.delete("id = 17")
    for reader in (ours, lance):
        dataset = reader.dataset(uri, storage_options=options)
        assert (dataset.version, dataset.count_rows(), len(dataset.get_fragments())) == (3, 4999, 4)
        check(dataset.to_table(), expected)
        assert dataset.to_table(columns=["half"], filter="id >= 4990").column("half").to_pylist()[0] == 2495.0
        check(dataset.take([4998, 0, 2500]), expected.take([0, 2500, 4998]))
        assert reader.dataset(uri, version=1, storage_options=options).count_rows() == 3000


def test_a_dataset_lives_its_life(s3_server: S3Server, uri: str) -> None:
    options = s3_server.options
    dataset = ours.write_dataset(rows(0, 1000), uri, storage_options=options)
    for start in range(1000, 4000, 1000):
        dataset = ours.write_dataset(rows(start, 1000), uri, mode="append", storage_options=options)
    with pytest.raises(ours.errors.AlreadyExistsError):
        ours.write_dataset(rows(0, 1), uri, storage_options=options)
    dataset.delete("id % 2 = 1")
    dataset.optimize.compact_files()
    expected = rows(0, 4000).filter(pa.compute.is_in(pa.compute.field("id"), pa.array(range(0, 4000, 2))))
    check(lance.dataset(uri, storage_options=options).to_table(), expected)
    check(pa.Table.from_batches(dataset.to_batches(batch_size=100)), expected)
    assert len(dataset.get_fragments()) == 1
    assert dataset.to_table(filter="name IS NULL", columns=["id"])["id"].to_pylist()[:3] == [0, 14, 28]
    again = pickle.loads(pickle.dumps(dataset))
    assert again.count_rows() == 2000
    assert again.latest_version == dataset.version
    old = ours.dataset(uri, version=1, storage_options=options)
    old.restore()
    assert ours.dataset(uri, storage_options=options).count_rows() == 1000
    ours.LanceDataset.drop(uri, storage_options=options)
    assert s3_server.keys(uri.split("/")[2]) == []
    with pytest.raises(ours.errors.DatasetNotFoundError):
        ours.dataset(uri, storage_options=options)


def test_a_long_file_is_uploaded_in_parts(s3_server: S3Server, uri: str) -> None:
    options = s3_server.options
    table = pa.table({"noise": np.random.default_rng(0).random(8_000_000)})
    with proxied(s3_server) as proxy:
        ours.write_dataset(table, uri, storage_options=proxy.server.options, max_rows_per_file=8_000_000)
        assert proxy.count("PUT", "partNumber=") >= 6
    for reader in (ours, lance):
        assert reader.dataset(uri, storage_options=options).to_table().equals(table)


def test_a_column_is_fetched_once(s3_server: S3Server, uri: str) -> None:
    table = pa.table({"noise": np.random.default_rng(0).random(3_000_000), "other": np.arange(3_000_000)})
    ours.write_dataset(table, uri, storage_options=s3_server.options)
    with proxied(s3_server) as proxy:
        dataset = ours.dataset(uri, storage_options=proxy.server.options)
        assert proxy.count() == 2  # the listing and the manifest
        proxy.requests.clear()
        assert dataset.to_table(columns=["noise"])["noise"].equals(table["noise"])
        spans = [header.removeprefix("bytes=").split("-") for _, _, header in proxy.requests]
        assert sum(int(stop) - int(start) + 1 for start, stop in spans if start) < 25_000_000
        proxy.requests.clear()
        assert dataset.take([1_234_567], columns=["noise"])["noise"].to_pylist() == [table["noise"][1_234_567].as_py()]
        assert proxy.count() <= 2


def test_a_commit_whose_answer_is_lost_is_a_commit(s3_server: S3Server, uri: str) -> None:
    ours.write_dataset(rows(0, 10), uri, storage_options=s3_server.options)
    with proxied(s3_server) as proxy:
        lost: list[str] = []

        def fault(method: str, path: str) -> str | None:
            if method != "PUT" or path in lost:
                return None
            lost.append(path)
            return LOSE_ANSWER

        proxy.fault = fault
        dataset = ours.write_dataset(rows(10, 10), uri, mode="append", storage_options=proxy.server.options)
        assert any(".manifest" in path for path in lost)
    assert dataset.version == 2
    check(lance.dataset(uri, storage_options=s3_server.options).to_table(), rows(0, 20))


_APPEND = """
    import importlib, sys
    import pyarrow as pa
    module = importlib.import_module(sys.argv[1])
    uri, start, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    options = dict(pair.split("=", 1) for pair in sys.argv[5:])
    for number in range(start, start + count):
        while True:
            try:
                module.write_dataset(pa.table({"id": [number]}), uri, mode="append", storage_options=options)
                break
            except OSError as error:
                if not getattr(error, "retryable", "commit" in str(error).lower()):
                    raise
"""


def test_concurrent_appends_lose_nothing(s3_server: S3Server, uri: str) -> None:
    options = s3_server.options
    ours.write_dataset(pa.table({"id": [0]}), uri, storage_options=options)
    pairs = [f"{key}={value}" for key, value in options.items()]
    each = 6
    processes = []
    for number, module in enumerate(["lance_dataset", "lance"] * 2):
        arguments = [module, uri, str(1 + number * each), str(each), *pairs]
        command = [sys.executable, "-c", textwrap.dedent(_APPEND), *arguments]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for process in processes:
        output = process.communicate(timeout=200)[0]
        assert process.returncode == 0, output
    for reader in (ours, lance):
        dataset = reader.dataset(uri, storage_options=options)
        assert sorted(dataset.to_table()["id"].to_pylist()) == list(range(1 + 4 * each))
        assert dataset.version == 1 + 4 * each
        assert [info["version"] for info in dataset.versions()] == list(range(1, 2 + 4 * each))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda options, bucket: (f"s3://{bucket}/none", options), id="no dataset"),
        pytest.param(lambda options, bucket: ("s3://no-such-bucket/t", options), id="no bucket"),
        pytest.param(
            lambda options, bucket: (f"s3://{bucket}/t", {**options, "aws_secret_access_key": "wrong"}), id="refused"
        ),
        pytest.param(lambda options, bucket: (f"s3://{bucket}/t", {**options, "allow_http": "maybe"}), id="bad flag"),
        pytest.param(lambda options, bucket: (f"s3://{bucket}/a//b", options), id="empty segment"),
    ],
)
def test_errors_are_caught_by_the_same_handlers(s3_server: S3Server, change: Callable) -> None:
    uri, options = change(s3_server.options, s3_server.new_bucket())
    quick = {**options, "client_max_retries": "0", "client_retry_timeout": "1"}
    for reader in (ours, lance):
        with pytest.raises(ValueError):
            reader.dataset(uri, storage_options=quick)
    with pytest.raises(ours.LanceError):
        ours.dataset(uri, storage_options=quick)
