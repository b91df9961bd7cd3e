"""Tests of datasets of both implementations over S3 with a manifest store in DynamoDB."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.stores.dynamodb_server import DynamoServer, dynamodb_server
from support.stores.s3_server import S3Server, s3_server
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.external.base import ManifestEntry
from lance_dataset.io.external.sql import sql_manifests

__all__ = ["dynamodb_server", "s3_server"]

TABLE = pa.table({"id": pa.array(range(10), pa.int64()), "s": [f"s{number}" for number in range(10)]})
WRITERS, ROUNDS = 4, 5

WRITER = """
import sys, json
import pyarrow as pa
import lance, lance_dataset

name, uri, number, rounds, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
module = {"ours": lance_dataset, "reference": lance}[name]
for turn in range(rounds):
    start = 1000 * (number + 1) + 10 * turn
    data = pa.table({"id": pa.array(range(start, start + 10), pa.int64())})
    module.write_dataset(data, uri, mode="append", storage_options=json.loads(options))
"""


@dataclass(frozen=True)
class Place:
    """A dataset that does not exist yet."""

    s3: S3Server
    dynamo: DynamoServer
    bucket: str
    table: str
    key: str = "dir/t.lance"

    @property
    def uri(self) -> str:
        return f"s3+ddb://{self.bucket}/{self.key}?ddbTableName={self.table}"

    @property
    def options(self) -> dict[str, str]:
        return {**self.dynamo.options, **self.s3.options}

    def write(self, module: ModuleType, table: pa.Table = TABLE, **options: Any) -> Any:
        return module.write_dataset(table, self.uri, storage_options=self.options, **options)

    def open(self, module: ModuleType, **options: Any) -> Any:
        return module.dataset(self.uri, storage_options=self.options, **options)

    def rows(self) -> list[dict[str, Any]]:
        return self.dynamo.rows(self.table)

    def manifests(self) -> list[str]:
        return [key for key in self.s3.keys(self.bucket) if ".manifest" in key]

    def path(self, version: int) -> str:
        return f"{self.key}/_versions/{2**64 - 1 - version:020d}.manifest"

    def row(self, version: int) -> dict[str, Any]:
        """Return the row of a complete version."""
        size = self.s3.client().head_object(Bucket=self.bucket, Key=self.path(version))["ContentLength"]
        path = self.path(version)
        return {"base_uri": self.key, "version": version, "path": path, "committer": "lancedb", "size": size}

    def unfinish(self, version: int) -> str:
        """Put a version in the state after the insert of its row, and return the staging key."""
        client, staging = self.s3.client(), f"{self.path(version)}-0a2c51ac-7a0f-4f9b-b5c7-53a1d1f1a0b5"
        row = self.row(version)
        client.copy_object(Bucket=self.bucket, Key=staging, CopySource=f"{self.bucket}/{self.path(version)}")
        client.delete_object(Bucket=self.bucket, Key=self.path(version))
        self.dynamo.put(self.table, **{**row, "path": staging})
        return staging


@pytest.fixture
def place(s3_server: S3Server, dynamodb_server: DynamoServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    # The reference takes the credentials of DynamoDB from the storage options, others from the environment.
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    return Place(s3_server, dynamodb_server, s3_server.new_bucket(), dynamodb_server.new_table())


MODULES = pytest.mark.parametrize("module", [lance_dataset, lance], ids=["ours", "reference"])


@MODULES
def test_rows_and_objects(place: Place, module: ModuleType) -> None:
    """Both libraries leave the same rows and the same names of objects."""
    place.write(module)
    place.write(module, mode="append")
    place.open(module).delete("id < 2")
    assert place.rows() == [place.row(version) for version in (1, 2, 3)]
    assert place.manifests() == sorted(place.path(version) for version in (1, 2, 3))
    for reader in (lance_dataset, lance):
        assert place.open(reader).version == 3
        assert place.open(reader).count_rows() == 16
        assert place.open(reader, version=2).count_rows() == 20


def test_turns(place: Place) -> None:
    """Each library continues what the other wrote."""
    place.write(lance)
    for turn in range(2):
        place.write(lance_dataset, mode="append")
        place.write(lance, mode="append")
        place.open(lance_dataset).delete(f"id = {turn}")
        place.open(lance).delete(f"id = {turn + 5}")
    assert place.rows() == [place.row(version) for version in range(1, 10)]
    assert_same(place.open(lance_dataset).to_table(), place.open(lance).to_table())
    assert place.open(lance_dataset).version == 9


@MODULES
@pytest.mark.parametrize("how", ["open", "version", "append"])
def test_unfinished_versions_are_completed(place: Place, module: ModuleType, how: str) -> None:
    place.write(lance_dataset)
    place.write(lance, mode="append")
    staging = place.unfinish(2)
    assert staging in place.manifests()
    if how == "append":
        place.write(module, mode="append")
    else:
        opened = place.open(module, **({"version": 2} if how == "version" else {}))
        assert opened.version == 2
        assert opened.count_rows() == 20
    versions = [1, 2, 3] if how == "append" else [1, 2]
    assert place.rows() == [place.row(version) for version in versions]
    assert place.manifests() == sorted(place.path(version) for version in versions)


@pytest.mark.parametrize("step", ["copied", "referred"])
def test_a_writer_that_ended_later(place: Place, step: str) -> None:
    """A version is completed if its writer ended before it updated the row or before it removed the staging object."""
    place.write(lance_dataset)
    content = place.s3.client().get_object(Bucket=place.bucket, Key=place.path(1))["Body"].read()
    staging = place.unfinish(1)
    place.s3.client().put_object(Bucket=place.bucket, Key=place.path(1), Body=content)
    if step == "referred":
        place.dynamo.put(place.table, **place.row(1))
    else:
        place.s3.client().delete_object(Bucket=place.bucket, Key=staging)
    for module in (lance_dataset, lance):
        assert place.open(module).count_rows() == 10
    assert place.rows() == [place.row(1)]
    place.write(lance_dataset, mode="append")
    place.write(lance, mode="append")
    assert place.open(lance_dataset).count_rows() == 30


def test_nothing_is_lost(place: Place, tmp_path: Path) -> None:
    import json

    place.write(lance_dataset, TABLE.select(["id"]))
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    processes = [
        subprocess.Popen(
            [sys.executable, script, name, place.uri, str(number), str(ROUNDS), json.dumps(place.options)],
            stderr=subprocess.PIPE,
        )
        for number, name in enumerate(["ours", "reference"] * (WRITERS // 2))
    ]
    for process in processes:
        _, errors = process.communicate(timeout=250)
        assert process.returncode == 0, errors.decode()[-3000:]
    last = 1 + WRITERS * ROUNDS
    expected = [*range(10), *(1000 * (n + 1) + v for n in range(WRITERS) for v in range(10 * ROUNDS))]
    for module in (lance_dataset, lance):
        opened = place.open(module)
        assert opened.version == last
        assert sorted(opened.to_table()["id"].to_pylist()) == expected
    assert place.rows() == [place.row(version) for version in range(1, last + 1)]
    assert place.manifests() == sorted(place.path(version) for version in range(1, last + 1))


def test_calls(place: Place) -> None:
    """Opening costs one call of DynamoDB, and a commit only the calls that the protocol needs."""

    def calls(names: Iterable[str]) -> list[str]:
        return [name for name in names if name != "DescribeTable"]

    place.write(lance_dataset)
    place.dynamo.calls.clear()
    place.open(lance_dataset)
    assert calls(place.dynamo.calls) == ["Query"]
    place.dynamo.calls.clear()
    place.write(lance_dataset, mode="append")
    assert calls(place.dynamo.calls) == ["Query", "Query", "PutItem", "PutItem"]


def test_dropped_datasets(place: Place) -> None:
    """Dropping a dataset removes its rows, also those that the reference's `drop` leaves."""
    place.write(lance_dataset)
    lance_dataset.LanceDataset.drop(place.uri, place.options)
    assert place.rows() == []
    place.write(lance)
    lance.LanceDataset.drop(place.uri, place.options)
    assert len(place.rows()) == 1
    with pytest.raises(OSError):
        place.write(lance)
    with pytest.raises(FileNotFoundError, match="drop removes what it left"):
        place.write(lance_dataset)
    lance_dataset.LanceDataset.drop(place.uri, place.options)
    assert place.rows() == []
    place.write(lance)
    assert place.open(lance_dataset).count_rows() == 10


def test_detached_versions_of_the_reference(place: Place) -> None:
    """A detached version of the reference is not the newest version; the reference itself takes it for that."""
    place.write(lance)
    operation = lance.LanceOperation.Append([])
    made = lance.LanceDataset.commit(place.uri, operation, read_version=1, detached=True, storage_options=place.options)
    assert made.version > 2**63
    assert place.open(lance).version == made.version
    assert place.open(lance_dataset).version == 1
    assert place.open(lance_dataset, version=made.version).version == made.version
    assert place.write(lance_dataset, mode="append").version == 2


def test_a_plain_dataset(place: Place) -> None:
    """A dataset that was made without DynamoDB can be opened; its listing counts until there is a row."""
    uri = f"s3://{place.bucket}/{place.key}"
    lance.write_dataset(TABLE, uri, storage_options=place.options)
    lance_dataset.write_dataset(TABLE, uri, mode="append", storage_options=place.options)
    assert place.open(lance_dataset, version=1).count_rows() == 10
    assert place.open(lance_dataset).version == place.open(lance).version == 2
    place.write(lance_dataset, mode="append")
    assert place.open(lance_dataset).version == place.open(lance).version == 3
    assert place.rows()[-1] == place.row(3)


def test_keys_with_odd_characters(s3_server: S3Server, place: Place) -> None:
    odd = Place(s3_server, place.dynamo, place.bucket, place.table, "dir ä/t x.lance")
    odd.write(lance_dataset)
    odd.write(lance, mode="append")
    odd.write(lance_dataset, mode="append")
    assert odd.rows() == [odd.row(version) for version in (1, 2, 3)]


def test_an_sql_database_for_s3(place: Place, tmp_path: Path) -> None:
    """An SQL database can be the manifest store over the same objects; the reference reads them without it."""
    uri = f"s3://{place.bucket}/{place.key}"
    options = {**place.options, "manifest_store_url": f"sqlite:///{tmp_path}/manifests.db"}
    for _ in range(2):
        lance_dataset.write_dataset(TABLE, uri, mode="append", storage_options=options)
    lance_dataset.dataset(uri, storage_options=options).delete("id = 1")
    assert lance.dataset(uri, storage_options=place.options).count_rows() == 18
    manifests = sql_manifests(options["manifest_store_url"])
    row = place.row(3)
    assert manifests.get_latest(uri) == ManifestEntry(3, row["path"][len(place.key) + 1 :], row["size"])
    lance_dataset.LanceDataset.drop(uri, options)
    assert manifests.get_latest(uri) is None
    assert place.manifests() == []


def test_branches_have_rows_of_their_own(place: Place) -> None:
    made = place.write(lance)
    made.create_branch("dev")
    assert [row["base_uri"] for row in place.rows()] == [place.key, f"{place.key}/tree/dev"]
    lance_dataset.LanceDataset.drop(place.uri, place.options)
    assert place.rows() == []


def test_tables_are_checked(place: Place) -> None:
    other = place.dynamo.new_table(("uri", "S", "HASH"))
    for table in (other, "none-such"):
        uri = f"s3+ddb://{place.bucket}/{place.key}?ddbTableName={table}"
        for module in (lance_dataset, lance):
            with pytest.raises((ValueError, OSError)):
                module.dataset(uri, storage_options=place.options)
        with pytest.raises(InvalidInputError, match=r"base_uri \(S, HASH\) and version \(N, RANGE\)"):
            lance_dataset.dataset(uri, storage_options=place.options)
    for query in ("", "?ddbTableName=x&other=1", "?name=x"):
        for module in (lance_dataset, lance):
            with pytest.raises(ValueError, match="expects exactly one query"):
                module.dataset(f"s3+ddb://{place.bucket}/{place.key}{query}", storage_options=place.options)
