"""Tests of tags, branches and clones in a bucket, and between a bucket and a disk, compared with the reference."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import lance
import pyarrow as pa
import pytest
from support.stores.s3_server import S3Server

import lance_dataset
from lance_dataset.errors import ReferenceExistsError


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    return s3_server.new_bucket()


def test_branches(s3_server: S3Server, bucket: str) -> None:
    uri, options = f"s3://{bucket}/dir/t.lance", s3_server.options
    ours = lance_dataset.write_dataset(pa.table({"a": range(10)}), uri, storage_options=options)
    ours.delete("a = 3")
    branch = ours.create_branch("dev/x")
    assert branch.uri == f"{uri}/tree/dev/x"
    with pytest.raises(ReferenceExistsError):
        ours.create_branch("dev/x", 1)
    branch.delete("a = 4")
    branch.insert(pa.table({"a": [77]}))
    theirs = lance.dataset(uri, storage_options=options)
    assert theirs.checkout_version(("dev/x", None)).to_table() == branch.to_table()
    ours.tags.create("t", ("dev/x", None))
    with pytest.raises(ReferenceExistsError):
        ours.tags.create("t")
    assert theirs.tags.list() == ours.tags.list()
    assert theirs.branches.list() == ours.branches.list()
    assert lance_dataset.dataset(uri, version="t", storage_options=options).to_table() == branch.to_table()
    theirs.create_branch("theirs", ("dev/x", None))
    opened = ours.checkout_version(("theirs", None))
    opened.delete("a = 5")
    assert opened.count_rows() == 8
    ours.branches.delete("theirs")
    ours.tags.delete("t")
    ours.branches.delete("dev/x")
    assert theirs.branches.list() == {}
    assert not [key for key in s3_server.keys(bucket) if "/tree/" in key]
    assert ours.create_branch("dev/x", 1).count_rows() == 10


@pytest.mark.parametrize("name", ["a%2520b", "a%23b", "a%3Fb", "a b", "%C3%BC"])
def test_locations_with_escapes(s3_server: S3Server, bucket: str, name: str) -> None:
    """The base path of a clone and of a branch is decoded again, like every location."""
    uri, options = f"s3://{bucket}/{name}", s3_server.options
    source = lance_dataset.write_dataset(pa.table({"a": range(10)}), uri, storage_options=options)
    source.create_branch("dev")
    for clone in (source.shallow_clone(f"{uri}-c", None), source.checkout_version(("dev", None))):
        assert clone.to_table() == source.to_table()
    theirs = lance.dataset(f"{uri}-c", storage_options=options)
    assert theirs.to_table() == source.to_table()
    assert lance.dataset(f"{uri}/tree/dev", storage_options=options).count_rows("a < 5") == 5
    lance.dataset(uri, storage_options=options).shallow_clone(f"{uri}-t", None, storage_options=options)
    assert lance_dataset.dataset(f"{uri}-t", storage_options=options).to_table() == source.to_table()


def test_clones(s3_server: S3Server, bucket: str, tmp_path: Path) -> None:
    place, options = f"s3://{bucket}", s3_server.options
    source = lance_dataset.write_dataset(
        pa.table({"a": range(40)}), f"{place}/t", storage_options=options, max_rows_per_file=10
    )
    source.delete("a % 7 = 0")
    clone = source.shallow_clone(f"{place}/c", None)
    other = lance_dataset.dataset(f"{place}/c", storage_options=options)
    clone.delete("a = 1")
    other.delete("a = 2")  # merged with the other, whose files and those of the source it has to read
    assert lance.dataset(f"{place}/c", storage_options=options).to_table() == other.to_table()
    deep = other.deep_clone(f"{place}/d", None)
    assert deep.to_table() == other.to_table()
    assert other.deep_clone(tmp_path / "d", None, storage_options={}).to_table() == other.to_table()
    back = lance_dataset.dataset(tmp_path / "d").deep_clone(f"{place}/back", None, storage_options=options)
    assert lance.dataset(f"{place}/back", storage_options=options).to_table() == back.to_table() == other.to_table()
    assert source.count_rows() == 34


@pytest.mark.parametrize("package", [lance_dataset, lance], ids=["ours", "reference"])
def test_credentials_of_base_paths(s3_server: S3Server, bucket: str, tmp_path: Path, package: ModuleType) -> None:
    """A dataset on the disk has a base path in a bucket, whose credentials are given by its URI."""
    base, rows = f"s3://{bucket}/b", pa.table({"a": range(10)})
    params = {base: s3_server.options}
    bases = [package.DatasetBasePath(base, "b")]
    package.write_dataset(rows, tmp_path / "t", initial_bases=bases, target_bases=["b"], base_store_params=params)
    for reader in (lance_dataset, lance):
        assert reader.dataset(tmp_path / "t", base_store_params=params).to_table() == rows
    assert [key.split("/")[0] for key in s3_server.keys(bucket)] == ["b"]
