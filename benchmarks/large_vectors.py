"""Builds of vector indices of more vectors than the memory limit holds: time, peak of memory, recall, time of a query.

    python benchmarks/large_vectors.py FOLDER --rows 10000000 --memory 1200 IVF_RQ IVF_PQ

The table is made as a stream unless it exists; vectors lie around centers that are drawn at random. Each index is built
in a process of its own, whose peak counts all resident memory, pages of mapped files included.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_dataset
from memory import peak_memory, reset_peak

__all__: list[str] = []

_DIMENSION = 128
_CENTERS = 20_000
_SPREAD = 0.7
_BATCH_ROWS = 50_000
_K = 10
_QUERIES = 50
_PARAMETERS: dict[str, dict[str, Any]] = {"IVF_PQ": {"num_sub_vectors": 16}}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kinds", nargs="*", default=["IVF_RQ", "IVF_PQ"])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", type=int, default=1200, help="memory limit of the build, in MiB")
    parser.add_argument("--build", action="store_true", help="build the kind in this process, and print JSON")
    asked = parser.parse_intermixed_args()
    path = str(asked.folder / f"vectors-{asked.rows}.lance")
    if asked.build:
        print(json.dumps(_build(path, asked.kinds[0], asked.memory)))
        return
    _write(path, asked.rows)
    dataset = lance_dataset.dataset(path)
    queries = next(_vectors(_QUERIES, seed=99))
    truth = [_nearest(dataset, query, use_index=False) for query in queries]
    for kind in asked.kinds:
        command = [sys.executable, __file__, str(asked.folder), kind, "--build"]
        command += ["--rows", str(asked.rows), "--memory", str(asked.memory)]
        built = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(f"{kind}: built in {built['seconds']:.0f} s ({built['cpu']:.0f} s of processors), ", end="")
        print(f"peak {built['peak'] / 2**20:,.0f} MiB, {built['bytes'] / 2**20:,.0f} MiB of files", flush=True)
        dataset = lance_dataset.dataset(path)
        for options in ({"nprobes": 20}, {"nprobes": 20, "refine_factor": 10}):
            _search(dataset, queries, truth, options)
        dataset.drop_index("v_idx")


def _build(path: str, kind: str, memory: int) -> dict[str, float]:
    dataset = lance_dataset.dataset(path)
    reset_peak()
    start, cpu = time.perf_counter(), time.process_time()
    dataset.create_index("v", kind, replace=True, memory_limit=memory << 20, **_PARAMETERS.get(kind, {}))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    (described,) = dataset.describe_indices()
    return {"seconds": seconds, "cpu": cpu, "peak": peak_memory(), "bytes": described.total_size_bytes or 0}


def _nearest(dataset: Any, query: Any, **options: Any) -> set[int]:
    table = dataset.to_table(columns=["id"], nearest={"column": "v", "q": query, "k": _K, **options})
    return set(table["id"].to_pylist())


def _search(dataset: Any, queries: Any, truth: list[set[int]], options: dict[str, Any]) -> None:
    dataset.prewarm_index("v_idx")
    found = [_nearest(dataset, query, **options) for query in queries]
    start, cpu = time.perf_counter(), time.process_time()
    for query in queries:
        _nearest(dataset, query, **options)
    wall, cpu = (1000 * each / len(queries) for each in (time.perf_counter() - start, time.process_time() - cpu))
    recall = sum(len(right & mine) for right, mine in zip(truth, found, strict=True)) / _K / len(queries)
    print(f"  {options}: recall {recall:.3f}, {wall:.2f} ms a query ({cpu:.2f} ms of processors)", flush=True)


def _write(path: str, rows: int) -> None:
    if Path(path).exists():
        try:
            if lance_dataset.dataset(path).count_rows() == rows:
                return
        except ValueError:
            pass
        shutil.rmtree(path)
    schema = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), _DIMENSION))])

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for values in _vectors(rows, seed=1):
            lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), _DIMENSION)
            ids = pa.array(np.arange(start, start + len(values)))
            start += len(values)
            yield pa.RecordBatch.from_arrays([ids, lists], schema=schema)

    lance_dataset.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), path)


def _vectors(rows: int, seed: int) -> Iterator[Any]:
    centers = np.random.default_rng(0).standard_normal((_CENTERS, _DIMENSION), np.float32)
    rng = np.random.default_rng(seed)
    for start in range(0, rows, _BATCH_ROWS):
        count = min(_BATCH_ROWS, rows - start)
        noise = rng.standard_normal((count, _DIMENSION), np.float32)
        yield centers[rng.integers(0, _CENTERS, count)] + np.float32(_SPREAD) * noise


if __name__ == "__main__":
    _main()
