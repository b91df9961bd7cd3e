"""Takes and scans of files that are not mapped, compared with the same files mapped, by type of the column.

    python benchmarks/unmapped.py                              # all types, version 2.1
    python benchmarks/unmapped.py --versions 2.0 2.1 --types int64 text
    python benchmarks/unmapped.py --rows 10000000 --cold       # a new handle for each take

All files are in the page cache. Mapped and unmapped calls alternate, and medians are compared: ``unmapped (ratio)`` in
microseconds. Every take has other rows. Blocks that unmapped takes have loaded stay in memory up to the limit
``LANCE_BLOCK_CACHE``; with ``--cold`` each take begins without any, and without mapped memory pages, and includes
opening. A scan reads every byte of its result.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_dataset as lance
from touch import touch

SAMPLES = 40
SECONDS = 0.3


def types(rows: int) -> dict[str, Callable[[np.random.Generator], pa.Array]]:
    """Return functions that make a column of each type; large values have fewer rows."""
    few = max(rows // 20, 1)

    def text(rng: np.random.Generator) -> pa.Array:
        letters = rng.integers(97, 123, rows * 20, np.uint8)
        offsets = np.arange(0, rows * 20 + 1, 20, np.int32)
        return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))

    def lists(rng: np.random.Generator) -> pa.Array:
        ends = np.cumsum(rng.integers(0, 7, rows), dtype=np.int32)
        items = rng.integers(0, 1 << 30, int(ends[-1]), np.int32)
        return pa.ListArray.from_arrays(np.append(np.int32(0), ends), items)

    def blobs(rng: np.random.Generator) -> pa.Array:
        content = pa.py_buffer(rng.integers(0, 256, few * 1000, np.uint8))
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), few, [None, pa.py_buffer(np.arange(0, few * 1000 + 1, 1000)), content]
        )

    return {
        "int64": lambda rng: pa.array(rng.integers(0, 1 << 62, rows)),
        "int64 with nulls": lambda rng: pa.array(rng.integers(0, 1 << 62, rows), mask=rng.random(rows) < 0.1),
        "int64 of 10 bits": lambda rng: pa.array(rng.integers(0, 1000, rows)),
        "bool": lambda rng: pa.array(rng.random(rows) < 0.5),
        "text": text,
        "few texts": lambda rng: pa.array([f"text {number}" for number in range(9)]).take(rng.integers(0, 9, rows)),
        "list": lists,
        "struct": lambda rng: pa.StructArray.from_arrays(
            [rng.integers(0, 1 << 62, rows), rng.random(rows)], ["whole", "part"]
        ),
        "128 floats": lambda rng: pa.FixedSizeListArray.from_arrays(rng.random(few * 128, np.float32), 128),
        "1000 bytes": blobs,
    }


def alternating(calls: list[Callable[[int], object]]) -> list[float]:
    """Return the median seconds of each call; all get the same numbers."""
    times: list[list[float]] = [[] for _ in calls]
    for number in range(SAMPLES // 4):
        for call in calls:
            call(number)
    begin, number = time.perf_counter(), 0
    while number < 5 or (time.perf_counter() - begin < SECONDS * len(calls) and number < 20 * SAMPLES):
        for mine, call in zip(times, calls, strict=True):
            started = time.perf_counter()
            call(number)
            mine.append(time.perf_counter() - started)
        number += 1
    return [statistics.median(mine) for mine in times]


def compared(path: Path, operation: Callable[[lance.LanceDataset, int], object], *, cold: bool) -> str:
    def opened(mapped: bool) -> lance.LanceDataset:
        return lance.dataset(path, storage_options={"mmap": str(mapped).lower()}, session=lance.Session())

    if cold:
        calls = [lambda number, mapped=mapped: operation(opened(mapped), number) for mapped in (True, False)]
    else:
        calls = [
            lambda number, dataset=dataset: operation(dataset, number) for dataset in (opened(True), opened(False))
        ]
    mapped, unmapped = alternating(calls)
    return f"{unmapped * 1e6:,.0f} ({unmapped / mapped:.2f})"


def takes(total: int, count: int, *, ascending: bool) -> Callable[[lance.LanceDataset, int], object]:
    rows = [np.random.default_rng(seed).integers(0, total, count) for seed in range(SAMPLES)]
    if ascending:
        rows = [np.sort(some) for some in rows]
    wanted = [some.tolist() if count <= 100 else some for some in rows]
    return lambda dataset, number: dataset.take(wanted[number % SAMPLES])


def main() -> None:
    """Measure, and print a line per version and type."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--versions", nargs="+", default=["2.1"])
    parser.add_argument("--types", nargs="+", help="beginnings of names")
    parser.add_argument("--cold", action="store_true")
    given = parser.parse_args()
    columns = ["1 row", "100 rows", "100 ascending", "10,000 rows", "10,000 ascending", "scan"]
    print("".join(name.rjust(width) for name, width in zip(["", *columns], [24, *[20] * 6], strict=True)))
    folder = Path(tempfile.mkdtemp())
    try:
        for version in given.versions:
            for name, make in types(given.rows).items():
                if given.types and not name.startswith(tuple(given.types)):
                    continue
                array, path = make(np.random.default_rng(0)), folder / f"{version} {name}"
                lance.write_dataset(pa.table({"x": array}), path, data_storage_version=version)
                cells = []
                for count, ascending in ((1, False), (100, False), (100, True), (10_000, False), (10_000, True)):
                    operation = takes(len(array), count, ascending=ascending)
                    cells.append(compared(path, operation, cold=given.cold))
                cells.append(compared(path, lambda dataset, _: touch(dataset.to_table()), cold=given.cold))
                print(f"{version} {name}".ljust(24) + "".join(cell.rjust(20) for cell in cells), flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
