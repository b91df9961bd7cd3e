"""Tests of vector indices that old releases of pylance wrote, against what these releases and the newest one find."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset

FIXTURES = Path(__file__).parents[2] / "fixtures" / "indices"
NAMES = sorted(path.name for path in FIXTURES.glob("vectors-*"))
#: Graphs in formats that no later release reads.
UNREADABLE = {"vectors-0.10.18-hnsw-sq", "vectors-0.16.1-hnsw-sq"}
#: Indices whose distances the release itself computed otherwise: sums of products without a correction, codes of bytes
#: without their scale, RaBitQ estimates with other constants.
OTHERWISE = {
    "vectors-0.20.0-dot",
    "vectors-0.20.0-hnsw-sq",
    "vectors-0.30.0-hnsw-sq",
    *(name for name in NAMES if "-rq" in name and "13.0.0" not in name),
}
#: Indices of rotations by a matrix, which new segments do not get.
NOT_EXTENDED = {"vectors-1.0.0-rq", "vectors-1.0.0-rqdot", "vectors-4.0.0-rq", "vectors-7.0.0-rqdot"}
#: The newest release does not use this index, and compares all vectors.
UNUSED = {"vectors-0.20.0-hnsw-pq"}


def expected(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FIXTURES / name / "expected.json").read_text())
    return found


def search(dataset: Any, query: dict[str, Any]) -> tuple[set[int], Any]:
    near = {"column": "v", "q": np.array(query["q"], np.float32), "k": 6, "nprobes": query["nprobes"]}
    found = dataset.to_table(columns=["id", "_distance"], nearest=near)
    return set(found["id"].to_pylist()), np.asarray(found["_distance"])


def test_all_are_there() -> None:
    assert len(NAMES) > 20
    assert set(NAMES) >= UNREADABLE | OTHERWISE | UNUSED


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNREADABLE])
def test_searches(name: str) -> None:
    mine, other = lance_dataset.dataset(FIXTURES / name), lance.dataset(FIXTURES / name)
    for query in expected(name):
        ids, distances = search(mine, query)
        if name not in OTHERWISE:
            assert ids == set(query["ids"])
            np.testing.assert_allclose(distances, query["distances"], rtol=1e-4, atol=1e-5)
        if name not in UNUSED:
            their_ids, their_distances = search(other, query)
            assert ids == their_ids
            np.testing.assert_allclose(distances, their_distances, rtol=1e-4, atol=1e-4)
    plan = mine.scanner(nearest={"column": "v", "q": np.zeros(8), "k": 6}).explain_plan()
    assert "ANNSubIndex" in plan


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_unreadable_ones_are_not_used(name: str, caplog: pytest.LogCaptureFixture) -> None:
    dataset = lance_dataset.dataset(FIXTURES / name)
    rows = dataset.to_table()
    vectors = np.asarray(rows["v"].combine_chunks().flatten()).reshape(-1, 8)
    with caplog.at_level(logging.WARNING):
        for query in expected(name):
            nearest = np.argsort(((vectors - np.array(query["q"])) ** 2).sum(axis=1), kind="stable")[:6]
            assert search(dataset, query)[0] == set(rows["id"].take(pa.array(nearest)).to_pylist())
    assert "is not used" in caplog.text
    assert "is not used" in dataset.scanner(nearest={"column": "v", "q": np.zeros(8), "k": 6}).explain_plan(True)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNREADABLE])
def test_statistics_and_contents(name: str) -> None:
    mine, other = lance_dataset.dataset(FIXTURES / name), lance.dataset(FIXTURES / name)
    found = mine.index_statistics("v_idx")
    (segment,) = found["indices"]
    assert sum(each["size"] for each in segment["partitions"]) == 320
    if name not in UNUSED:
        assert mine.centroids(column="v").equals(other.centroids(index_name="v_idx"))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNREADABLE])
def test_compaction_keeps_the_results(name: str, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / name, tmp_path / "data")
    dataset = lance_dataset.dataset(tmp_path / "data")
    before = [search(dataset, query) for query in expected(name)]
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    assert len(dataset.get_fragments()) == 1
    for (ids, distances), query in zip(before, expected(name), strict=True):
        found = search(dataset, query)
        if "hnsw" in name:  # walks of mended graphs take other ways
            assert name in UNUSED or found[0] == search(lance.dataset(tmp_path / "data"), query)[0]
            continue
        # which distances are estimated from rounded sums depends on the number of rows
        tolerance = 0.05 if "rq" in name else 1e-5
        assert found[0] == ids or "rq" in name
        np.testing.assert_allclose(found[1], distances, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNREADABLE and "hnsw" not in name])
def test_optimizing(name: str, tmp_path: Path) -> None:
    """New rows get a segment with the same models, or there is an error that says what to do."""
    shutil.copytree(FIXTURES / name, tmp_path / "data")
    dataset = lance_dataset.dataset(tmp_path / "data")
    dataset.insert(dataset.to_table().slice(0, 50))
    if name in NOT_EXTENDED:
        with pytest.raises(lance_dataset.errors.UnsupportedError, match="retrain=True"):
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
        return
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    (described,) = dataset.describe_indices()
    assert len(described.segments) == 2
    for query in expected(name)[:2]:
        mine, theirs = search(dataset, query), search(lance.dataset(tmp_path / "data"), query)
        assert mine[0] == theirs[0]
