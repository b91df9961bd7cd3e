"""Tests of vector indices that workers build with the same models, by either package, and one of them merges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset

ROWS, DIMENSION, PARTITIONS = 1200, 16, 4
PACKAGES: dict[str, Any] = {"ours": lance_dataset, "theirs": lance}
ROTATION = json.dumps(
    {
        "num_bits": 5,
        "rotation_type": "fast",
        "fast_rotation_signs": [90] * 8,
        "code_dim": DIMENSION,
        "rotate_mat_position": None,
        "packed": False,
        "query_estimator": "raw_query",
    }
)
#: Parameters of kinds, and the entries of the metadata that tell whether codes are grouped.
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "IVF_FLAT": ({}, ""),
    "IVF_PQ": ({"num_sub_vectors": 4}, "transposed"),
    "IVF_RQ": ({"rabitq_model": ROTATION}, "packed"),
    "IVF_HNSW_PQ": ({"num_sub_vectors": 4}, "transposed"),
    "IVF_HNSW_SQ": ({}, ""),
}


def lists(values: Any) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)


def write(path: Path) -> Any:
    rng = np.random.default_rng(0)
    values = (3 * rng.integers(0, 4, (ROWS, 1)) + rng.standard_normal((ROWS, DIMENSION))).astype(np.float32)
    lance.write_dataset(pa.table({"id": range(ROWS), "v": lists(values)}), path, max_rows_per_file=400)
    return values


def given(kind: str, values: Any) -> dict[str, Any]:
    parameters = {**KINDS[kind][0], "ivf_centroids": lists(values[:PARTITIONS]), "num_partitions": PARTITIONS}
    if "num_sub_vectors" in parameters:
        parameters["pq_codebook"] = lists(np.random.default_rng(1).standard_normal((256, DIMENSION)).astype(np.float32))
    return parameters


def taken_by(package: Any, built: Any) -> Any:
    """Return a segment of one package as that of another."""
    names = ("uuid", "name", "fields", "dataset_version", "fragment_ids", "index_version", "created_at")
    return package.Index(**{name: getattr(built, name) for name in names}, index_details=built.index_details)


def grouped(path: Path, segment: str, key: str) -> bool:
    file = lance_dataset.file.LanceFileReader(path / "_indices" / segment / "auxiliary.idx")
    (described,) = json.loads(file.metadata().schema.metadata[b"storage_metadata"])
    found: bool = json.loads(described)[key]
    return found


@pytest.mark.parametrize(
    ("builders", "merger"),
    [("ours ours ours", "theirs"), ("theirs ours theirs", "theirs"), ("theirs theirs ours", "ours")],
)
@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_merged(tmp_path: Path, kind: str, builders: str, merger: str) -> None:
    values, key = write(tmp_path), KINDS[kind][1]
    parts = []
    for number, name in enumerate(builders.split()):
        dataset = PACKAGES[name].dataset(tmp_path)
        built = dataset.create_index_uncommitted("v", kind, "x", fragment_ids=[number], **given(kind, values))
        assert not key or not grouped(tmp_path, built.uuid, key)
        parts.append(taken_by(PACKAGES[merger], built))
    dataset = PACKAGES[merger].dataset(tmp_path)
    merged = dataset.merge_existing_index_segments(parts)
    dataset.commit_existing_index_segments("x", "v", [merged])
    assert not key or grouped(tmp_path, merged.uuid, key)
    for query in values[5::300]:
        near = {"column": "v", "q": query, "k": 10, "nprobes": PARTITIONS}
        mine, other = (each.dataset(tmp_path).to_table(nearest=near)["_distance"] for each in PACKAGES.values())
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)
    sizes = lance.dataset(tmp_path).stats.index_stats("x")["indices"][0]["partitions"]
    assert sum(each["size"] for each in sizes) == ROWS


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_RQ"])
def test_all_fragments_are_no_part(tmp_path: Path, kind: str) -> None:
    """Codes of segments that need no merging are grouped, in either package."""
    values, key = write(tmp_path), KINDS[kind][1]
    for package in PACKAGES.values():
        dataset = package.dataset(tmp_path)
        built = dataset.create_index_uncommitted("v", kind, "x", fragment_ids=[0, 1, 2], **given(kind, values))
        assert grouped(tmp_path, built.uuid, key)
