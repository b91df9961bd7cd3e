"""Tests of transactions of past versions."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.tables.bare_tables import create, fragment

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError, VersionNotFoundError
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.history import read_transaction_of
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.manifest import encode_manifest
from lance_dataset.table.naming import Naming
from lance_dataset.table.operations import Append
from lance_dataset.table.transaction import Transaction, read_transaction
from lance_dataset.table.versions import list_versions, read_version

ROOT = "/t"


def test_transactions_are_those_of_the_manifests(tmp_path: Path) -> None:
    path, store = str(tmp_path / "t"), LocalStore()
    dataset = lance.write_dataset(pa.table({"a": range(100)}), path, max_rows_per_file=10)
    dataset.delete("a = 5")
    dataset.create_scalar_index("a", "BTREE")
    dataset.update_config({"k": "v"})
    dataset.optimize.compact_files()
    for name in list_versions(store, path):
        found = read_transaction_of(store, path, name.version, name.naming)
        assert found is not None
        assert found == read_transaction(store, path, read_version(store, path, name.version))
        assert found == read_transaction_of(store, path, name.version)
    with pytest.raises(VersionNotFoundError):
        read_transaction_of(store, path, 99)


@pytest.mark.parametrize("v2", [True, False])
def test_names_may_change(v2: bool) -> None:
    store = MemoryStore()
    create(store, ROOT, 10, v2=v2)
    made = commit_transaction(store, ROOT, Transaction(1, Append((fragment(),))))
    for naming in (Naming.V1, Naming.V2, None):
        found = read_transaction_of(store, ROOT, 2, naming)
        assert found is not None
        assert found.file_name == made.transaction_file


def test_transactions_in_files_and_in_the_old_place() -> None:
    store = MemoryStore()
    create(store, ROOT, 10)
    made = commit_transaction(store, ROOT, Transaction(1, Append((fragment(),))))
    expected = read_transaction(store, ROOT, made)
    store.put(made.path, encode_manifest(replace(made, inline_transaction=None)))
    assert read_transaction_of(store, ROOT, 2) == expected
    store.delete(f"{ROOT}/_transactions/{made.transaction_file}")
    assert read_transaction_of(store, ROOT, 2) is None
    store.put(made.path, encode_manifest(replace(made, inline_transaction=None, transaction_file="")))
    assert read_transaction_of(store, ROOT, 2) is None
    # Releases 1 to 11 store its position in another field.
    data = encode_manifest(made)
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    message = table_pb2.Manifest.FromString(data[position + 4 : -16])
    message.transaction_section_deprecated = message.transaction_section
    message.ClearField("transaction_section")
    encoded = message.SerializeToString()
    store.put(made.path, data[:position] + struct.pack("<I", len(encoded)) + encoded + data[-16:])
    assert read_transaction_of(store, ROOT, 2) == expected


def test_broken_manifests() -> None:
    store = MemoryStore()
    create(store, ROOT, 10)
    made = commit_transaction(store, ROOT, Transaction(1, Append((fragment(),))))
    data = encode_manifest(made)
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    for broken in (
        b"",
        data[:-1],
        data[:-16] + struct.pack("<q", -5) + data[-8:],
        data[:-16] + struct.pack("<q", len(data)) + data[-8:],
        data[:position] + b"\xff\xff\xff\xff" + data[position + 4 :],
        data[: position + 4] + b"\xff" * (len(data) - position - 20) + data[-16:],
        struct.pack("<I", 1 << 30) + data[4:],
    ):
        store.put(made.path, broken)
        with pytest.raises(CorruptFileError, match="manifest"):
            read_transaction_of(store, ROOT, 2)
