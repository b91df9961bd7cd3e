from __future__ import annotations

import uuid

import pyarrow as pa

from lance_dataset.io.base import ObjectStore
from lance_dataset.schema import Schema
from lance_dataset.table.commit.loop import create_table
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Overwrite
from lance_dataset.table.transaction import Transaction

SCHEMA = Schema.from_arrow(pa.schema([pa.field("a", pa.int64())]))


def fragment(rows: int = 10, *, minor: int = 2, fragment_id: int = 0) -> Fragment:
    """A fragment of a file that nobody reads."""
    major = 2 if minor else 0
    file = DataFile(f"{uuid.uuid4()}.lance", (0,), (0,) if major else (), major, minor if major else 2, 1000)
    return Fragment(fragment_id, (file,), physical_rows=rows)


def create(store: ObjectStore, root: str, *rows: int, stable: bool = False, v2: bool = True) -> Manifest:
    """A table with one fragment for each number of rows."""
    operation = Overwrite(SCHEMA, tuple(fragment(count) for count in rows))
    return create_table(
        store, root, Transaction(0, operation), enable_stable_row_ids=stable, enable_v2_manifest_paths=v2
    )
