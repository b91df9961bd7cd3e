"""Data files, mostly of one column, written by this package and read by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance.file
import numpy as np
import pyarrow as pa

from lance_dataset.file import LanceFileReader
from lance_dataset.file.writer import DataFileWriter
from lance_dataset.io.local_output import LocalOutput
from lance_dataset.types.schema import Schema
from support.tables.equality import assert_same


def write(path: Path, table: pa.Table, version: str = "2.3", **options: Any) -> Path:
    """Write a data file of a table and return its path."""
    path.unlink(missing_ok=True)
    writer = DataFileWriter(LocalOutput(str(path), durable=False), Schema.from_arrow(table.schema), version, **options)
    for batch in table.to_batches():
        writer.write_batch(batch)
    writer.finish()
    return path


def column(array: pa.Array, nullable: bool = True, **metadata: Any) -> pa.Table:
    """Return a table of the column ``x``, with encoding options."""
    options = {f"lance-encoding:{name.replace('_', '-')}": value for name, value in metadata.items()}
    return pa.table([array], schema=pa.schema([pa.field("x", array.type, nullable, metadata=options or None)]))


def assert_both_read(path: Path, expected: pa.Table, seed: int = 0) -> None:
    """Assert that both read the same rows: all, a range, and random ones."""
    rng = np.random.default_rng(seed)
    count = len(expected)
    start, stop = sorted(rng.integers(0, count + 1, 2).tolist())
    rows = np.sort(rng.choice(count, min(count, 20), replace=False)).tolist()
    for reader in (lance.file.LanceFileReader(str(path)), LanceFileReader(str(path))):
        assert_same(reader.read_all().to_table(), expected)
        if stop > start:
            assert_same(reader.read_range(start, stop - start).to_table(), expected.slice(start, stop - start))
        if rows:
            assert_same(reader.take_rows(rows).to_table(), pa.concat_tables([expected.slice(row, 1) for row in rows]))
