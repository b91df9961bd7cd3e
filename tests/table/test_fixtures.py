"""Tests of manifests, transactions and deletion files written by many releases of the reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lance_dataset.io.local import LocalStore
from lance_dataset.table.deletions import read_deletions
from lance_dataset.table.manifest import decode_manifest, encode_manifest, read_manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Transaction, read_transaction
from lance_dataset.table.versions import latest_version, list_versions, locate_version

FIXTURES = Path(__file__).parent.parent / "fixtures" / "table"
TABLES = sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*.lance"))
STORE = LocalStore()

#: Releases that wrote no row counts into their manifests.
UNCOUNTED = ("pylance-0.4.21", "pylance-0.5.10", "pylance-0.7.5")
OPERATIONS = ["Overwrite", "Append", "Append", "Delete"]


def test_there_are_all() -> None:
    assert len({table.split("/")[0] for table in TABLES}) == 19


@pytest.mark.parametrize("table", TABLES)
def test_manifests(table: str) -> None:
    root = str(FIXTURES / table)
    rows = [300, 500, 600, 585] if table.endswith("ds.lance") else [300, 285]
    versions = list_versions(STORE, root)
    assert [name.version for name in versions] == list(range(1, len(versions) + 1))
    assert latest_version(STORE, root) == versions[-1]
    for name in versions:
        manifest = read_manifest(STORE, locate_version(STORE, root, name.version))
        assert manifest.version == name.version
        if table.startswith(UNCOUNTED):
            assert manifest.num_rows is None
        else:
            assert manifest.num_rows == rows[name.version - 1]
        again = decode_manifest(encode_manifest(manifest), manifest.path)
        assert replace(again, file_size=manifest.file_size) == manifest


@pytest.mark.parametrize("table", TABLES)
def test_storage_versions(table: str) -> None:
    root = str(FIXTURES / table)
    manifest = read_manifest(STORE, locate_version(STORE, root, latest_version(STORE, root).version))
    ending = table.split("/")[0].rsplit("-", 1)[1]
    expected = {"default": "0.1", "legacy": "0.1", "v2": "2.0"}.get(ending, ending)
    assert manifest.storage_version == expected
    assert {file.storage_version for fragment in manifest.fragments for file in fragment.files} == {expected}


@pytest.mark.parametrize("table", TABLES)
def test_deletions(table: str) -> None:
    root = str(FIXTURES / table)
    manifest = read_manifest(STORE, locate_version(STORE, root, latest_version(STORE, root).version))
    locator = FileLocator(STORE, root, manifest.base_paths)
    deleted = [read_deletions(locator, fragment, 300) for fragment in manifest.fragments]
    # 0.4.21 had no deletions yet.
    assert sum(map(len, deleted)) == (0 if table.startswith("pylance-0.4.21") else 15)


@pytest.mark.parametrize("table", TABLES)
def test_transactions(table: str) -> None:
    root = str(FIXTURES / table)
    for name in list_versions(STORE, root):
        manifest = read_manifest(STORE, locate_version(STORE, root, name.version))
        transaction = read_transaction(STORE, root, manifest)
        if table.startswith(("pylance-0.4.21", "pylance-0.5.10")):
            assert transaction is None
            continue
        assert transaction is not None
        assert transaction.read_version == name.version - 1
        expected = (
            OPERATIONS[name.version - 1] if table.endswith("ds.lance") else ["Overwrite", "Delete"][name.version - 1]
        )
        assert transaction.operation.name == expected
        assert Transaction.decode(transaction.encode(), "x") == transaction
        from_file = read_transaction(STORE, root, replace(manifest, inline_transaction=None))
        assert from_file == transaction
