"""Whole datasets on real servers: every kind of store, and every kind of manifest store, does the same work.

The servers are started once per process, by the first test that needs them. Nothing is left out: a server that is not
installed is a failure.
"""

from __future__ import annotations

import datetime
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from support.stores.azure_server import AzureServer, azure_server
from support.stores.dynamodb_server import DynamoServer, dynamodb_server
from support.stores.gcs_server import GoogleServer, google_server
from support.stores.postgres_server import PostgresServer, postgres_server
from support.stores.s3_server import S3Server

import lance_dataset
from lance_dataset.errors import AlreadyExistsError, CommitConflictError, DatasetNotFoundError

__all__ = ["azure_server", "dynamodb_server", "google_server", "postgres_server"]

ROUNDS = 6


@dataclass(frozen=True)
class Place:
    """Where a dataset can be."""

    uri: str
    options: dict[str, str]

    def write(self, table: pa.Table, mode: str = "create") -> lance_dataset.LanceDataset:
        return lance_dataset.write_dataset(table, self.uri, mode=mode, storage_options=self.options)

    def open(self, version: int | str | None = None) -> lance_dataset.LanceDataset:
        return lance_dataset.dataset(self.uri, version=version, storage_options=self.options)


@pytest.fixture(params=["s3", "azure", "google", "postgres", "dynamodb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a place on one of the servers."""
    if request.param == "azure":
        azure: AzureServer = request.getfixturevalue("azure_server")
        return Place(f"az://{azure.new_container()}/dir/t.lance", azure.options)
    if request.param == "google":
        google: GoogleServer = request.getfixturevalue("google_server")
        return Place(f"gs://{google.new_bucket()}/dir/t.lance", google.options)
    if request.param == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        options = {"manifest_store_url": postgres.new_database(), "local_fsync": "false"}
        return Place(str(tmp_path / "t.lance"), options)
    s3: S3Server = request.getfixturevalue("s3_server")
    bucket = s3.new_bucket()
    if request.param == "s3":
        return Place(f"s3://{bucket}/dir/t.lance", s3.options)
    dynamo: DynamoServer = request.getfixturevalue("dynamodb_server")
    uri = f"s3+ddb://{bucket}/dir/t.lance?ddbTableName={dynamo.new_table()}"
    return Place(uri, {**dynamo.options, **s3.options})


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "text": [f"row {number}" for number in numbers]})


def ids(dataset: lance_dataset.LanceDataset) -> list[int]:
    return sorted(dataset.to_table()["id"].to_pylist())


def test_every_change(place: Place) -> None:
    with pytest.raises(DatasetNotFoundError):
        place.open()
    made = place.write(rows(*range(10)))
    with pytest.raises(AlreadyExistsError):
        place.write(rows(1))
    made.tags.create("first", 1)
    place.write(rows(*range(10, 20)), "append")
    opened = place.open()
    assert opened.version == 2
    assert made.version == 1
    opened.delete("id % 2 = 1")
    assert place.open().take([0, 2, 9], columns=["id"])["id"].to_pylist() == [0, 4, 18]
    opened.update({"text": "'changed'"}, where="id = 4")
    opened.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(6, 7, 40))
    expected = [*range(0, 20, 2), 7, 40]
    assert ids(place.open()) == sorted(expected)
    assert place.open().count_rows("text = 'changed'") == 1
    assert place.open().to_table(filter="id = 40")["text"].to_pylist() == ["row 40"]
    assert ids(place.open("first")) == list(range(10))
    branch = place.open().create_branch("side")
    branch.delete("id > 6")
    assert sorted(place.open().branches.list()) == ["side"]
    assert ids(branch) == [0, 2, 4, 6]
    assert ids(place.open()) == sorted(expected)
    last = place.open()
    last.optimize.compact_files()
    assert len(place.open().get_fragments()) == 1
    assert [each["version"] for each in last.versions()] == list(range(1, last.version + 1))


def test_cleanup_and_drop(place: Place) -> None:
    place.write(rows(1)).tags.create("kept", 1)
    for number in range(2, 5):
        place.write(rows(number), "overwrite" if number == 4 else "append")
    dataset = place.open()
    removed = dataset.cleanup_old_versions(
        datetime.timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert removed.old_versions == 2
    assert [each["version"] for each in place.open().versions()] == [1, 4]
    assert (ids(place.open("kept")), ids(place.open())) == ([1], [4])
    dataset.tags.delete("kept")
    dataset.restore()
    assert place.open().version == 5
    lance_dataset.LanceDataset.drop(place.uri, place.options)
    with pytest.raises(DatasetNotFoundError):
        place.open()
    assert place.write(rows(9)).version == 1


def test_conflicts(place: Place) -> None:
    place.write(rows(*range(10)))
    one, other = place.open(), place.open()
    one.delete("id = 1")
    other.delete("id = 2")  # rebased on the first
    stale = lance_dataset.LanceOperation.Overwrite(one.schema, [])
    committed = lance_dataset.LanceDataset.commit(place.uri, stale, read_version=1, storage_options=place.options)
    assert committed.version == 4
    fragment = lance_dataset.fragment.LanceFragment.create(place.uri, rows(7), storage_options=place.options)
    removal = lance_dataset.LanceOperation.Delete([], [0], "id = 1")
    with pytest.raises(CommitConflictError):
        lance_dataset.LanceDataset.commit(place.uri, removal, read_version=3, storage_options=place.options)
    append = lance_dataset.LanceOperation.Append([fragment])
    lance_dataset.LanceDataset.commit(place.uri, append, read_version=4, storage_options=place.options)
    assert (place.open().version, ids(place.open())) == (5, [7])


_together: Barrier


def _set_barrier(barrier: Barrier) -> None:
    global _together
    _together = barrier


def append_one_by_one(place: Place, first: int) -> None:
    """Append single rows, beside another process that does the same."""
    _together.wait(60)
    for number in range(first, first + ROUNDS):
        place.write(rows(number), "append")


@pytest.fixture(scope="module")
def two_processes() -> Iterator[Callable[[Place], None]]:
    """Return a function that appends to a place from two other processes at once, which are started only once."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, _set_barrier, (context.Barrier(2),)) as pool:

        def append(place: Place) -> None:
            work = [pool.submit(append_one_by_one, place, first) for first in (100, 200)]
            for each in work:
                each.result(120)

        yield append


def test_writers_in_two_processes(place: Place, two_processes: Callable[[Place], None]) -> None:
    place.write(rows(0))
    two_processes(place)
    assert place.open().version == 1 + 2 * ROUNDS
    assert ids(place.open()) == [0, *range(100, 100 + ROUNDS), *range(200, 200 + ROUNDS)]
