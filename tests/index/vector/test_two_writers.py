"""Tests of several writers that change rows, build and optimize vector indices of one table at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CommitConflictError

ROWS, DIMENSION = 1200, 8
KINDS: dict[str, dict[str, Any]] = {
    "IVF_PQ": {"num_sub_vectors": 4, "num_bits": 4},
    "IVF_HNSW_SQ": {"m": 4},
    "IVF_RQ": {},
}


def rows(first: int, count: int) -> pa.Table:
    values = np.random.default_rng(first).standard_normal((count, DIMENSION)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "v": lists})


@pytest.mark.parametrize("kind", KINDS)
def test_builds_and_optimizations(tmp_path: Path, kind: str) -> None:
    """Each change lands whole or conflicts; afterwards both packages find the same rows, and no fragment is in two."""
    dataset = lance_dataset.write_dataset(rows(0, ROWS), tmp_path, max_rows_per_file=400)
    dataset.create_index("v", kind, num_partitions=2, **KINDS[kind])

    def append(turn: int) -> None:
        lance_dataset.dataset(tmp_path).insert(rows(ROWS + 100 * turn, 100))

    def optimize(turn: int) -> None:
        lance_dataset.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=turn % 3, retrain=turn == 4)

    def build(turn: int) -> None:
        handle = lance_dataset.dataset(tmp_path)
        handle.create_index("v", kind, num_partitions=2, replace=True, **KINDS[kind])

    def compact(turn: int) -> None:
        handle = lance_dataset.dataset(tmp_path)
        handle.delete(f"id % 50 = {turn}")
        handle.optimize.compact_files()

    def run(job: tuple[Callable[[int], None], int]) -> bool:
        try:
            job[0](job[1])
        except CommitConflictError:
            return False
        return True

    jobs = [(action, turn) for turn in range(6) for action in (append, optimize, build, compact)]
    with ThreadPoolExecutor(4) as pool:
        landed = list(pool.map(run, jobs))
    assert sum(landed) >= len(jobs) // 2
    ours, theirs = lance_dataset.dataset(tmp_path), lance.dataset(tmp_path)
    parts = [each["fragment_ids"] for each in ours.list_indices()]
    assert sum(map(len, parts)) == len(set().union(*parts))
    assert {each["name"] for each in ours.list_indices()} == {"v_idx"}
    ours.validate()
    kept = ours.to_table(columns=["id"])["id"].to_pylist()
    assert len(kept) == len(set(kept)) == ours.count_rows()
    for query in np.random.default_rng(1).standard_normal((6, DIMENSION)).astype(np.float32):
        near = {"column": "v", "q": query, "k": 8, "nprobes": 2, "refine_factor": 30}
        exact = ours.to_table(nearest={**near, "use_index": False}, columns=["id"])["id"].to_pylist()
        for package in (ours, theirs):
            assert package.to_table(nearest=near, columns=["id"])["id"].to_pylist() == exact
