"""Tables without their data files, for code that reads manifests and deletion files only."""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_dataset.io.base import ObjectStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.deletions import read_deletions, write_deletions
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest, read_manifest
from lance_dataset.table.operations import Append, Delete, Overwrite
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import latest_version, locate_version
from lance_dataset.types.schema import Schema

SCHEMA = Schema.from_arrow(pa.schema([pa.field("a", pa.int64())]))


def fragment(rows: int = 10, *, minor: int = 2, fragment_id: int = 0) -> Fragment:
    """Return a fragment whose file is never read."""
    major = 2 if minor else 0
    file = DataFile(f"{uuid.uuid4()}.lance", (0,), (0,) if major else (), major, minor if major else 2, 1000)
    return Fragment(fragment_id, (file,), physical_rows=rows)


def create(store: ObjectStore, root: str, *rows: int, stable: bool = False, v2: bool = True) -> Manifest:
    """Make a table with one fragment for each number of rows."""
    operation = Overwrite(SCHEMA, tuple(fragment(count) for count in rows))
    return create_table(
        store, root, Transaction(0, operation), enable_stable_row_ids=stable, enable_v2_manifest_paths=v2
    )


def read(store: ObjectStore, root: str, version: int | None = None) -> Manifest:
    number = version if version is not None else latest_version(store, root).version
    return read_manifest(store, locate_version(store, root, number))


def append(store: ObjectStore, root: str, read_version: int, *rows: int) -> Manifest:
    return commit_transaction(store, root, Transaction(read_version, Append(tuple(fragment(n) for n in rows))))


def delete(store: ObjectStore, root: str, base: Manifest, rows: dict[int, list[int]], **options: object) -> Manifest:
    """Delete offsets of fragments like a writer that has read `base`."""
    updated, removed = [], []
    for fragment_id, offsets in rows.items():
        current = base.fragment(fragment_id)
        assert current is not None
        old = read_deletions(FileLocator(store, root), current)
        complete = np.union1d(old, np.array(offsets, np.uint32))
        if len(complete) == current.physical_rows:
            removed.append(fragment_id)
        else:
            file = write_deletions(store, root, fragment_id, base.version, complete)
            updated.append(replace(current, deletion_file=file))
    operation = Delete(tuple(updated), tuple(removed), "x")
    affected = {key: np.array(value, np.uint32) for key, value in rows.items()}
    return commit_transaction(
        store,
        root,
        Transaction(base.version, operation),
        affected_rows=affected,
        **options,  # type: ignore[arg-type]
    )


def deleted(store: ObjectStore, root: str, manifest: Manifest) -> dict[int, list[int]]:
    locator = FileLocator(store, root)
    return {item.id: read_deletions(locator, item).tolist() for item in manifest.fragments if item.deletion_file}
