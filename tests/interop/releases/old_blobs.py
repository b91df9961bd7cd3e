"""Write the values of a blob column as Arrow IPC; an old release runs it: old_blobs.py DATASET COLUMN ROWS FILE."""

from __future__ import annotations

import inspect
import sys

import lance
import pyarrow as pa


def main(path: str, column: str, rows: str, file: str) -> None:
    dataset = lance.dataset(path)
    given = [int(row) for row in rows.split(",")]
    named = "indices" in inspect.signature(dataset.take_blobs).parameters
    blobs = dataset.take_blobs(column, indices=given) if named else dataset.take_blobs(given, column)
    table = pa.table({column: pa.array([blob.readall() for blob in blobs], pa.large_binary())})
    with pa.OSFile(file, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
