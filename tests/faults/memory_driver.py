"""Program that writes or scans a large table and prints the peak memory; run by test_memory.py."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_dataset as lance


def peak() -> int:
    """Return the peak memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux ru_maxrss starts from the memory of the parent when it forked
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def narrow(number: int) -> pa.RecordBatch:
    """Return 4 MB of numbers."""
    values = np.random.default_rng(number).integers(0, 1 << 60, 250_000)
    return pa.record_batch({"a": values, "b": values})


def wide(number: int) -> pa.RecordBatch:
    """Return 4 MB over 1,000 columns."""
    values = np.random.default_rng(number).random((1000, 500))
    return pa.record_batch({f"c{i}": values[i] for i in range(1000)})


def text(number: int) -> pa.RecordBatch:
    """Return 4 MB of strings of many lengths."""
    noise = np.random.default_rng(number).bytes(2000).hex()
    return pa.record_batch({"t": [f"{number} {i} {noise[: i % 2000]}" for i in range(4000)]})


def lists(number: int) -> pa.RecordBatch:
    """Return 4 MB of lists."""
    lengths = np.random.default_rng(number).integers(0, 100, 10_000)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = np.arange(offsets[-1], dtype=np.int64)
    return pa.record_batch({"l": pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))})


def nested(number: int) -> pa.RecordBatch:
    """Return 4 MB of lists of structs with strings."""
    items = pa.StructArray.from_arrays(
        [pa.array(np.arange(60_000) + number), pa.array([f"item {i % 5000} of {number}" for i in range(60_000)])],
        names=["x", "t"],
    )
    return pa.record_batch({"l": pa.ListArray.from_arrays(pa.array(range(0, 60_001, 60), pa.int32()), items)})


MAKERS = {"narrow": narrow, "wide": wide, "text": text, "lists": lists, "nested": nested}


def stream(kind: str, batches: int) -> Iterator[pa.RecordBatch]:
    for number in range(batches):
        yield MAKERS[kind](number)


def write(uri: str, kind: str, batches: int) -> None:
    schema = MAKERS[kind](0).schema
    lance.write_dataset(stream(kind, batches), uri, schema=schema)
    print(peak(), 0)


def giant(uri: str, size: int) -> None:
    """Yield a row of `size` bytes between small ones."""
    value = pa.array([b"x" * 10, bytes(size), b"y"], pa.large_binary())
    before = peak()
    lance.write_dataset(pa.table({"b": value}), uri)
    print(peak() - before, 0)


def scan(uri: str) -> None:
    dataset = lance.dataset(uri)
    dataset.take([0])
    before = peak()
    table = dataset.to_table()
    print(peak() - before, table.nbytes)


def scan_batches(uri: str) -> None:
    dataset = lance.dataset(uri)
    before = peak()
    total = sum(batch.nbytes for batch in dataset.to_batches())
    print(peak() - before, total)


def scan_filtered(uri: str, filter: str) -> None:
    """Scan batches of the rows that a filter keeps, with few batches read ahead."""
    dataset = lance.dataset(uri)
    dataset.take([0])
    before = peak()
    total = sum(batch.nbytes for batch in dataset.to_batches(filter=filter, io_buffer_size=32 << 20))
    print(peak() - before, total)


if __name__ == "__main__":
    action, *given = sys.argv[1:]
    {"write": write, "giant": giant, "scan": scan, "batches": scan_batches, "filter": scan_filtered}[action](
        *(int(value) if value.isdigit() else value for value in given)
    )
