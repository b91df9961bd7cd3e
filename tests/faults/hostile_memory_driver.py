"""Program that reads files and prints how much memory each took beyond its result; run by test_hostile_memory.py."""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_dataset.dataset  # noqa: F401 - modules that are imported later would take from the memory
from lance_dataset.errors import LanceError
from lance_dataset.file.standalone import LanceFileReader

#: Beyond the memory of the process: a bomb becomes a MemoryError.
LIMIT = 3 << 30


def status(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def read_all(reader: LanceFileReader) -> int:
    return sum(sum(column.nbytes for column in batch.columns) for batch in [reader.read_all().to_table()])


def read_batches(reader: LanceFileReader) -> int:
    return max((batch.nbytes for batch in reader.read_all(batch_size=1000).to_batches()), default=0)


def read_first(reader: LanceFileReader) -> int:
    """Read the first batch only."""
    return next(iter(reader.read_all(batch_size=1000).to_batches())).nbytes


def spread(reader: LanceFileReader, count: int) -> list[int]:
    rows = reader.num_rows()
    return [i * rows // count for i in range(count)] if rows > count else list(range(rows))


def take(reader: LanceFileReader) -> int:
    return reader.take_rows(spread(reader, 500)).to_table().nbytes


def take_backwards(reader: LanceFileReader) -> int:
    return reader.take_rows(spread(reader, 500)[::-1]).to_table().nbytes


def take_one(reader: LanceFileReader) -> int:
    return reader.take_rows([0]).to_table().nbytes


def opening(reader: LanceFileReader) -> int:
    return len(str(reader.metadata().schema)) and 0


WAYS: dict[str, Callable[[LanceFileReader], int]] = {
    "all": read_all,
    "batches": read_batches,
    "first": read_first,
    "take": take,
    "backwards": take_backwards,
    "one": take_one,
    "open": opening,
}


def run(path: str, way: str) -> dict[str, Any]:
    """Return the name of the error, if any, the bytes of the result, and the peak of the memory in bytes."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from the memory in use
    before = status("VmRSS")
    size, error = 0, ""
    try:
        size = WAYS[way](LanceFileReader(path))
    except LanceError as raised:
        error = f"{type(raised).__name__}: {raised}"[:500]
    except MemoryError as raised:
        error = f"MemoryError {raised}"
    return {"path": path, "way": way, "error": error, "size": size, "peak": status("VmHWM") - before}


def cases() -> Iterator[tuple[str, str]]:
    for line in sys.stdin:
        path, way = line.rstrip("\n").split("\t")
        yield path, way


if __name__ == "__main__":
    used = status("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT, resource.RLIM_INFINITY))
    for path, way in cases():
        print(json.dumps(run(path, way)), flush=True)
