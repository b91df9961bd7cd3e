"""Reads of files that are not in memory: time, and bytes read from the device.

    python benchmarks/cold.py [folder] [rounds]

Both libraries read the same two tables, which are created in the folder (a temporary one by default). For each
operation, a new process imports the library, drops the table's files from the page cache (``posix_fadvise`` with
``DONTNEED`` after a sync, which works for files that no process has mapped), opens the table and runs the operation
once. Bytes are ``read_bytes`` of ``/proc/self/io``: what the device read for the process, including readahead. Linux
only. A virtual disk may have a cache of its own, which this cannot drop. Times are then better than those of a real
disk, but bytes are still correct. The warm time is that of the same operation on another handle in the same process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 2_000_000
VECTORS = 200_000
DIMENSION = 128
LIBRARIES = {"ours": "lance_dataset", "lance": "lance"}


def lineitem() -> pa.Table:
    rng = np.random.default_rng(1)
    words = np.array([f"word{number}" for number in range(1000)])
    numbers = {f"number{column}": rng.integers(0, 10 ** (column + 2), ROWS) for column in range(5)}
    floats = {f"float{column}": rng.random(ROWS) for column in range(4)}
    flags = {"flag": pa.array(rng.choice(["A", "N", "R"], ROWS))}
    comment = np.char.add(np.char.add(rng.choice(words, ROWS), " "), rng.choice(words, ROWS))
    return pa.table({**numbers, **floats, **flags, "comment": pa.array(comment)})


def vectors() -> pa.Table:
    values = np.random.default_rng(2).random(VECTORS * DIMENSION, np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(values), DIMENSION)
    return pa.table({"id": np.arange(VECTORS), "vector": column})


TABLES: dict[str, Callable[[], pa.Table]] = {"lineitem": lineitem, "vectors": vectors}


def rows_of(dataset: Any, count: int) -> list[int]:
    return np.random.default_rng(os.getpid()).choice(dataset.count_rows(), count, replace=False).tolist()


OPERATIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "take 1 row": ("lineitem", lambda d: d.take(rows_of(d, 1))),
    "take 1,000 rows": ("lineitem", lambda d: d.take(rows_of(d, 1000))),
    "scan one column": ("lineitem", lambda d: d.to_table(columns=["float0"])),
    "take 1 vector": ("vectors", lambda d: d.take(rows_of(d, 1))),
    "take 1,000 vectors": ("vectors", lambda d: d.take(rows_of(d, 1000))),
    "scan vectors": ("vectors", lambda d: d.to_table(columns=["vector"])),
}


def drop(folder: Path) -> None:
    """Drop the files of a folder from the page cache."""
    os.sync()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def device_bytes() -> int:
    text = Path("/proc/self/io").read_text(encoding="ascii")
    return int(dict(line.split(": ") for line in text.splitlines())["read_bytes"])


def measure(library: str, operation: str, folder: Path) -> dict[str, float]:
    """Measure one cold and one warm run in this process."""
    module = __import__(LIBRARIES[library])
    table, run = OPERATIONS[operation]
    other = next(name for name in TABLES if name != table)
    run_dry(module, folder / other)
    drop(folder / table)
    before, started = device_bytes(), time.perf_counter()
    run(module.dataset(str(folder / table)))
    cold = time.perf_counter() - started
    read = device_bytes() - before
    started = time.perf_counter()
    run(module.dataset(str(folder / table)))
    return {"cold": cold, "bytes": read, "warm": time.perf_counter() - started}


def run_dry(module: Any, path: Path) -> None:
    """Load all lazily loaded code by running on another table."""
    dataset = module.dataset(str(path))
    dataset.take([0])
    dataset.to_table(limit=1)


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        library, operation, folder = sys.argv[2:5]
        print(json.dumps(measure(library, operation, Path(folder))))
        return
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    for name, make in TABLES.items():
        if not (folder / name).exists():
            import lance

            lance.write_dataset(make(), str(folder / name), data_storage_version="2.2")
    print(f"{'operation':20} {'library':7} {'cold ms':>9} {'warm ms':>9} {'device KiB':>11}")
    for operation in OPERATIONS:
        found: dict[str, list[dict[str, float]]] = {library: [] for library in LIBRARIES}
        for _ in range(rounds):
            for library, measured in found.items():
                command = [sys.executable, __file__, "--measure", library, operation, str(folder)]
                measured.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
        for library, measured in found.items():
            cold, warm, read = (statistics.median(each[key] for each in measured) for key in ("cold", "warm", "bytes"))
            print(f"{operation:20} {library:7} {cold * 1e3:9.2f} {warm * 1e3:9.2f} {read / 1024:11.0f}", flush=True)


if __name__ == "__main__":
    main()
