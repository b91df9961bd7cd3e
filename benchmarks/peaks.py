"""Peak memory of operations on a table of line items, beside the reference: each in a process of its own.

    python benchmarks/peaks.py [--rows 2000000] [--rounds 3] [--only 'merge*' scan] [--limit BYTES]

``peak`` is the resident memory above that after the same with a thousand rows, with pages of mapped files;
``anonymous`` is without them (sampled, Linux only). With ``--limit``, this package runs with ``LANCE_MEMORY_LIMIT``.
Medians over the rounds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from data import DATASETS
from memory import AnonymousPeak, peak_memory, reset_peak

_LINES = DATASETS["lineitem"]
_MODULES = {"lance-dataset": "lance_dataset", "pylance": "lance"}
_FEW_ROWS = 1_000
Activity = Callable[[Any, Path, int], object]


def _rows(start: int, count: int) -> pa.Table:
    """Return rows with the keys ``[start, start + count)`` in a column `id`."""
    made = pa.Table.from_batches(_LINES.batches(count))
    return made.append_column("id", pa.array(np.arange(start, start + count)))


def _stream(rows: int) -> pa.RecordBatchReader:
    schema = _LINES.schema.append(pa.field("id", pa.int64()))

    def numbered() -> Any:
        start = 0
        for batch in _LINES.batches(rows):
            numbers = pa.array(np.arange(start, start + batch.num_rows))
            yield pa.record_batch([*batch.columns, numbers], schema=schema)
            start += batch.num_rows

    return pa.RecordBatchReader.from_batches(schema, numbered())


def _drain(reader: Any) -> int:
    return sum(batch.num_rows for batch in reader)


def _merge(module: Any, path: Path, rows: int) -> object:
    merge = module.dataset(path).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute(_rows(rows - rows // 20, rows // 10))


#: What is measured; those in `_CHANGES` get a copy of the table.
_ACTIVITIES: dict[str, Activity] = {
    "write": lambda module, path, rows: module.write_dataset(_stream(rows), path / "new", data_storage_version="2.2"),
    "scan": lambda module, path, _: module.dataset(path).to_table(),
    "scan, in batches": lambda module, path, _: _drain(module.dataset(path).to_batches()),
    "scan, a tenth": lambda module, path, rows: module.dataset(path).to_table(filter=f"id < {rows // 10}"),
    "scan, sorted": lambda module, path, _: _drain(module.dataset(path).scanner(order_by=["partkey"]).to_batches()),
    "count a tenth": lambda module, path, _: module.dataset(path).count_rows("partkey < 6667"),
    "take 100,000": lambda module, path, rows: module.dataset(path).take(
        np.random.default_rng(1).integers(0, rows, 100_000).tolist()
    ),
    "merge a tenth": _merge,
    "update a hundredth": lambda module, path, _: module.dataset(path).update({"tax": "discount"}, "partkey < 667"),
    "delete a tenth": lambda module, path, _: module.dataset(path).delete("partkey < 6667"),
    "compact": lambda module, path, rows: module.dataset(path).optimize.compact_files(target_rows_per_fragment=rows),
    "add a column": lambda module, path, _: module.dataset(path).add_columns({"twice": "partkey * 2"}),
    "index a key": lambda module, path, _: module.dataset(path).create_scalar_index("partkey", "BTREE"),
    "index text": lambda module, path, _: module.dataset(path).create_scalar_index("comment", "INVERTED"),
}
_CHANGES = ("merge*", "update*", "delete*", "compact", "add*", "index*", "write")


def perform(name: str, activity: str, path: Path, rows: int) -> None:
    """Do something once in this process, and print its peaks."""
    module = importlib.import_module(_MODULES[name])
    with tempfile.TemporaryDirectory() as folder:  # what is imported and made once must not count
        small = Path(folder) / "small"
        module.write_dataset(_stream(_FEW_ROWS), small, data_storage_version="2.2", max_rows_per_file=_FEW_ROWS // 4)
        _ACTIVITIES[activity](module, small, _FEW_ROWS)
    reset_peak()
    base = peak_memory()
    sampler = AnonymousPeak()
    sampler.start()
    result = _ACTIVITIES[activity](module, path, rows)
    anonymous = sampler.stop()
    print(json.dumps({"peak": peak_memory() - base, "anonymous": anonymous}))
    del result


def measure(name: str, activity: str, table: Path, rows: int, limit: int | None) -> dict[str, int]:
    """Run this file in a new process, on a copy of the table if it is changed."""
    with tempfile.TemporaryDirectory(dir=table.parent) as folder:
        path = table
        if any(fnmatch(activity, pattern) for pattern in _CHANGES):
            path = Path(folder) / "copy"
            shutil.copytree(table, path)
        command = [sys.executable, __file__, "--perform", name, activity, str(path), "--rows", str(rows)]
        limited = {} if limit is None else {"LANCE_MEMORY_LIMIT": str(limit)}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **limited})
        if done.returncode != 0:
            raise SystemExit(f"{activity} of {name} failed, see above")
        return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=["*"])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--perform", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.perform:
        name, activity, path = given.perform
        perform(name, activity, Path(path), given.rows)
        return
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "lines"
        reference = importlib.import_module("lance")
        reference.write_dataset(
            _stream(given.rows), table, data_storage_version="2.2", max_rows_per_file=max(1, given.rows // 4)
        )
        print(f"{'MiB':<20} {'ours peak, anonymous':>22} {'pylance peak, anonymous':>25}   ours / pylance")
        for activity in _ACTIVITIES:
            if not any(fnmatch(activity, pattern) for pattern in given.only):
                continue
            found: dict[str, list[dict[str, int]]] = {name: [] for name in _MODULES}
            for _ in range(given.rounds):
                for name in _MODULES:
                    limit = given.limit if name == "lance-dataset" else None
                    found[name].append(measure(name, activity, table, given.rows, limit))
            ours, theirs = (
                [statistics.median(each[kind] for each in found[name]) / 2**20 for kind in ("peak", "anonymous")]
                for name in _MODULES
            )
            print(
                f"{activity:<20} {ours[0]:11,.0f} {ours[1]:10,.0f} {theirs[0]:14,.0f} {theirs[1]:10,.0f}   "
                f"{ours[0] / theirs[0]:.2f} {ours[1] / theirs[1]:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
