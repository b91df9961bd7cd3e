"""Read or change a dataset; an old release runs it: old_release.py COMMAND DATASET [FILE [VERSION]]."""

from __future__ import annotations

import inspect
import sys

import lance
import pyarrow as pa


def dump(path: str, file: str) -> None:
    """Write all rows, and then rows taken in reverse order, as Arrow IPC streams."""
    dataset = lance.dataset(path)
    table = dataset.to_table()
    count = dataset.count_rows()
    assert count == table.num_rows, (count, table.num_rows)
    filtered = dataset.to_table(filter="id % 3 = 1", columns=["id"])
    assert filtered["id"].to_pylist() == [value for value in table["id"].to_pylist() if value % 3 == 1]
    taken = dataset.take(list(range(count))[::-7]) if count else table
    for name, rows in (("rows", table), ("taken", taken)):
        with pa.OSFile(f"{file}.{name}", "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)


def write(path: str, file: str, version: str) -> None:
    """Create the dataset from the batches of an Arrow IPC file, or append them."""
    source = pa.ipc.open_file(file)
    # Not slices of a table: releases before 0.16 wrote wrong rows of sliced structs.
    batches = [source.get_batch(number) for number in range(source.num_record_batches)]
    if "data_storage_version" in inspect.signature(lance.write_dataset).parameters:
        options = {"data_storage_version": version}
    elif version == "legacy":
        options = {}  # the only format that this release writes
    else:
        raise ValueError(f"this release does not write file version {version}")
    if version == "legacy":
        options["max_rows_per_group"] = 50
    rows = pa.RecordBatchReader.from_batches(source.schema, batches)
    lance.write_dataset(rows, path, mode="append", **options)


def delete(path: str, predicate: str) -> None:
    lance.dataset(path).delete(predicate)


def compact(path: str, _: str) -> None:
    lance.dataset(path).optimize.compact_files()


if __name__ == "__main__":
    {"dump": dump, "write": write, "delete": delete, "compact": compact}[sys.argv[1]](*sys.argv[2:])
