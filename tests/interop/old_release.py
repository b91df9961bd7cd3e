"""Run by an old release: reads or changes a dataset.  old_release.py COMMAND DATASET [FILE [VERSION]]."""

from __future__ import annotations

import sys

import lance
import pyarrow as pa


def dump(path: str, file: str) -> None:
    """All rows, and after them rows taken in reverse order, as Arrow IPC streams."""
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
    """Create the dataset of the rows of an Arrow IPC file, or append them."""
    # Arrow IPC aligns to 8 bytes, lance wants 16 for decimals.
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.lib.Alignment.At64Byte)
    table = pa.ipc.open_file(file, options=options).read_all()
    lance.write_dataset(table, path, mode="append", data_storage_version=version)


def delete(path: str, predicate: str) -> None:
    lance.dataset(path).delete(predicate)


def compact(path: str, _: str) -> None:
    lance.dataset(path).optimize.compact_files()


if __name__ == "__main__":
    {"dump": dump, "write": write, "delete": delete, "compact": compact}[sys.argv[1]](*sys.argv[2:])
