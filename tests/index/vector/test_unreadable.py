"""Tests of searches with vector indices that cannot be read: they raise, or compare all vectors if that is wanted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import LanceError

ROWS, DIMENSION = 700, 8
VALUES = np.random.default_rng(4).standard_normal((ROWS, DIMENSION)).astype(np.float32)
NEAR: dict[str, Any] = {"column": "v", "q": VALUES[3], "k": 6, "metric": "cosine", "nprobes": 3}


def remove(folder: Path) -> None:
    (folder / "auxiliary.idx").unlink()


def cut(folder: Path) -> None:
    path = folder / "index.idx"
    path.write_bytes(path.read_bytes()[:-40])


def spoil_graph(folder: Path) -> None:
    """Overwrite neighbors: the files open, and the partition cannot be read."""
    path = folder / "index.idx"
    content = bytearray(path.read_bytes())
    content[len(content) // 4 : len(content) // 2] = b"\xee" * (len(content) // 2 - len(content) // 4)
    path.unlink()
    path.write_bytes(content)


DAMAGES: list[Callable[[Path], None]] = [remove, cut, spoil_graph]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(VALUES.reshape(-1)), DIMENSION)
    rows = pa.table({"id": range(ROWS), "v": lists})
    dataset = lance_dataset.write_dataset(rows, tmp_path, max_rows_per_file=500)
    dataset.create_index("v", "IVF_HNSW_FLAT", metric="cosine", num_partitions=3, m=4, ef_construction=20)
    dataset.insert(rows.slice(0, 20))
    return tmp_path


def found(path: Path, **options: Any) -> list[dict[str, Any]]:
    near = {**NEAR, **options.pop("nearest", {})}
    rows: list[dict[str, Any]] = (
        lance_dataset.dataset(path).to_table(columns=["id", "_distance"], nearest=near, **options).to_pylist()
    )
    return rows


@pytest.mark.parametrize("damage", DAMAGES)
def test_vectors_are_compared_instead(
    table: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    exact = found(table, nearest={"use_index": False})
    filtered = found(table, nearest={"use_index": False}, filter="id % 3 = 0", prefilter=True)
    (folder,) = (table / "_indices").iterdir()
    damage(folder)
    with pytest.raises((LanceError, OSError)):
        found(table)
    with caplog.at_level(logging.WARNING):
        assert found(table, on_index_error="scan") == exact
    assert "cannot be read, so all" in caplog.text
    assert found(table, on_index_error="scan", filter="id % 3 = 0", prefilter=True) == filtered
    assert found(table, on_index_error="scan", nearest={"refine_factor": 2}) == exact


@pytest.mark.parametrize("damage", [remove, cut])
def test_searches_that_need_the_index_raise(table: Path, damage: Callable[[Path], None]) -> None:
    """Its metric is unknown if the query names none, and rows without index are not left out."""
    (folder,) = (table / "_indices").iterdir()
    damage(folder)
    needs: list[dict[str, Any]] = [
        {"nearest": {"metric": None}},
        {"fast_search": True},
        {"index_segments": [folder.name]},
    ]
    for options in needs:
        with pytest.raises((LanceError, OSError)):
            found(table, on_index_error="scan", **options)


def test_only_the_indexed_rows_are_compared(table: Path) -> None:
    (folder,) = (table / "_indices").iterdir()
    spoil_graph(folder)
    near = found(table, on_index_error="scan", fast_search=True)
    assert [each["id"] for each in near] == [
        each["id"] for each in found(table, on_index_error="scan", index_segments=[folder.name])
    ]
    assert len({each["id"] for each in near}) == 6
    assert near[0]["id"] == 3
