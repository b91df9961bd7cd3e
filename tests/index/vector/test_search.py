"""Tests of searches of vector indices against pylance on the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import lance_dataset
from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.index.vector.searching.open_indices import vector_indices

ROWS, DIMENSION = 1200, 16
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_FLAT", {}),
    "pq8": ("IVF_PQ", {"num_sub_vectors": 4}),
    "pq4": ("IVF_PQ", {"num_sub_vectors": 8, "num_bits": 4}),
    "plain pq": ("IVF_PQ", {"num_sub_vectors": 4, "skip_transpose": True}),
    "sq": ("IVF_SQ", {}),
    **{f"rq{bits}": ("IVF_RQ", {"num_bits": bits}) for bits in range(1, 10)},
    "legacy": ("IVF_PQ", {"num_sub_vectors": 4, "index_file_version": "legacy"}),
}


def vectors(count: int, seed: int = 0, kind: Any = np.float32) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(99).standard_normal((12, DIMENSION)) * 2
    return (centers[rng.integers(0, 12, count)] + rng.standard_normal((count, DIMENSION))).astype(kind)


def table(values: NDArray[Any], first: int = 0) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return pa.table({"id": pa.array(range(first, first + len(values)), pa.int64()), "v": lists})


def made(path: Path, name: str, metric: str = "l2", kind: Any = np.float32, **options: Any) -> NDArray[Any]:
    """Write a table with an index, and return queries.

    Indices of RaBitQ codes are built here, with the same rotation each time: sums are rounded to few levels, so that
    another rotation now and then has one that both packages round apart.
    """
    values = vectors(ROWS, kind=kind)
    lance.write_dataset(table(values), path, max_rows_per_file=500, **options)
    index, parameters = KINDS[name]
    (lance_dataset if name.startswith("rq") else lance).dataset(path).create_index(
        "v", index, metric=metric, num_partitions=5, **parameters
    )
    return (vectors(4, 7, np.float64) * 0.9).astype(kind)


def check(path: Path, queries: NDArray[Any], *, tolerance: float = 2e-4, **options: Any) -> None:
    """Compare the results of queries, up to ties."""
    nearest = {"column": "v", "k": 8, "nprobes": 3, **options.pop("nearest", {})}
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for query in queries:
        asked = {"nearest": {**nearest, "q": query}, "columns": ["id", "_distance"], **options}
        mine, other = ours.to_table(**asked), theirs.to_table(**asked)
        near, expected = np.asarray(mine["_distance"]), np.asarray(other["_distance"])
        np.testing.assert_allclose(near, expected, rtol=tolerance, atol=tolerance)
        sure = expected < expected.max(initial=0) * (1 - 2 * tolerance) - 2 * tolerance
        assert set(np.asarray(other["id"])[sure]) <= set(mine["id"].to_pylist())


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("name", KINDS)
def test_same_rows_and_distances(tmp_path: Path, name: str, metric: str) -> None:
    queries = made(tmp_path, name, metric)
    check(tmp_path, queries)
    check(tmp_path, queries, nearest={"refine_factor": 3})
    check(tmp_path, queries, nearest={"distance_range": (0.3, 30.0)})
    check(tmp_path, queries, filter="id % 3 = 0", prefilter=True)
    check(tmp_path, queries, filter="id % 3 = 0")
    check(tmp_path, queries, nearest={"nprobes": None, "k": 3})


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize(("bits", "plain"), [(1, False), (3, True), (5, False), (9, False)])
def test_rabit_codes_of_the_reference(tmp_path: Path, bits: int, plain: bool, metric: str) -> None:
    lance.write_dataset(table(vectors(ROWS)), tmp_path, max_rows_per_file=500).create_index(
        "v", "IVF_RQ", metric=metric, num_partitions=5, num_bits=bits, skip_transpose=plain
    )
    ours, theirs = lance_dataset.dataset(tmp_path), lance.dataset(tmp_path)
    equal: list[bool] = []
    for query in vectors(8, 7) * np.float32(0.9):
        asked: dict[str, Any] = {
            "nearest": {"column": "v", "q": query, "k": 8, "nprobes": 3},
            "columns": ["id", "_distance"],
        }
        near, expected = (np.asarray(each.to_table(**asked)["_distance"]) for each in (ours, theirs))
        equal.append(np.allclose(near, expected, rtol=2e-4, atol=2e-4))
    assert sum(equal) >= 6, "most queries have no sums that are rounded apart"


@pytest.mark.parametrize("kind", [np.float64, np.float16])
@pytest.mark.parametrize("name", ["flat", "pq8", "sq", "rq5"])
def test_other_elements(tmp_path: Path, name: str, kind: Any) -> None:
    queries = made(tmp_path, name, kind=kind)
    check(tmp_path, queries, tolerance=1e-3)


def test_bits(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 256, (ROWS, DIMENSION)).astype(np.uint8)
    lance.write_dataset(table(values), tmp_path).create_index("v", "IVF_FLAT", metric="hamming", num_partitions=4)
    check(tmp_path, values[:4])


@pytest.mark.parametrize("mode", ["fast", "normal", "accurate"])
def test_efforts(tmp_path: Path, mode: str) -> None:
    check(tmp_path, made(tmp_path, "rq5"), nearest={"approx_mode": mode})


@pytest.mark.parametrize("effort", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_search_effort(tmp_path: Path, effort: float) -> None:
    queries = made(tmp_path, "flat")
    check(tmp_path, queries, nearest={"nprobes": None, "search_effort": effort})


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", ["flat", "pq8", "sq", "rq5", "legacy"])
def test_changed_tables(tmp_path: Path, name: str, stable: bool) -> None:
    queries = made(tmp_path, name, enable_stable_row_ids=stable)
    changed = lance.dataset(tmp_path)
    changed.delete("id % 4 = 1")
    check(tmp_path, queries)
    check(tmp_path, queries, filter="id < 700", prefilter=True)
    lance.write_dataset(table(vectors(200, 3), ROWS), tmp_path, mode="append")
    check(tmp_path, queries)
    check(tmp_path, queries, fast_search=True)
    changed = lance.dataset(tmp_path)
    changed.update({"id": "id + 5000"}, where="id % 10 = 2")
    check(tmp_path, queries)
    check(tmp_path, queries, filter="id > 900", prefilter=True)
    if name != "legacy":
        lance.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=0)
        check(tmp_path, queries)
    if not stable:  # with stable ids, the reference returns fewer rows: moved ones take places
        lance.dataset(tmp_path).optimize.compact_files()
        check(tmp_path, queries)


def test_deferred_remapping(tmp_path: Path) -> None:
    queries = made(tmp_path, "pq8")
    changed = lance.dataset(tmp_path)
    changed.delete("id % 5 = 0")
    changed.optimize.compact_files(defer_index_remap=True)
    check(tmp_path, queries)


def test_moved_rows_do_not_take_places(tmp_path: Path) -> None:
    queries = made(tmp_path, "flat", enable_stable_row_ids=True)
    changed = lance.dataset(tmp_path)
    changed.delete("id % 2 = 0")
    changed.optimize.compact_files()
    ours = lance_dataset.dataset(tmp_path)
    for query in queries:
        nearest = {"column": "v", "q": query, "k": 9, "nprobes": 5}
        found = ours.to_table(nearest=nearest, columns=["id"])
        exact = ours.to_table(nearest={**nearest, "use_index": False}, columns=["id"])
        assert found["id"].to_pylist() == exact["id"].to_pylist()


@pytest.mark.parametrize("name", ["flat", "pq8", "sq", "rq5"])
def test_lists_of_vectors(tmp_path: Path, name: str) -> None:
    values = vectors(3 * ROWS)
    inner = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 3 * ROWS + 1, 3, dtype=np.int32)), inner)
    written = lance.write_dataset(pa.table({"id": pa.array(range(ROWS)), "v": lists}), tmp_path)
    index, parameters = KINDS[name]
    written.create_index("v", index, metric="cosine", num_partitions=4, **parameters)
    queries = [vectors(2, seed) for seed in range(3)]
    check(tmp_path, queries, nearest={"k": 5, "nprobes": 4})  # type: ignore[arg-type]
    check(tmp_path, queries, nearest={"k": 5, "nprobes": 4, "refine_factor": 2})  # type: ignore[arg-type]


def test_batches_of_queries(tmp_path: Path) -> None:
    queries = made(tmp_path, "flat")
    asked = {"nearest": {"column": "v", "q": queries, "k": 3, "nprobes": 2}, "columns": ["id", "_distance"]}
    mine, other = (each.dataset(tmp_path).to_table(**asked) for each in (lance_dataset, lance))
    assert mine["query_index"].to_pylist() == other["query_index"].to_pylist()
    assert mine["id"].to_pylist() == other["id"].to_pylist()


def test_plans(tmp_path: Path) -> None:
    made(tmp_path, "pq8")
    dataset = lance_dataset.dataset(tmp_path)
    nearest = {"column": "v", "q": np.zeros(DIMENSION), "k": 3, "nprobes": 2, "refine_factor": 4}
    plan = dataset.scanner(nearest=nearest).explain_plan(verbose=True)
    assert "ANNSubIndex: name=v_idx, k=3, deltas=1, metric=L2, column=v, IVF_PQ, partitions=" in plan
    assert "partitions searched: 2" in plan
    assert "exact distances of 12 candidates" in plan
    assert "ANNSubIndex" in dataset.scanner(nearest=nearest).analyze_plan()
    plan = dataset.scanner(nearest={**nearest, "use_index": False}).explain_plan(verbose=True)
    assert "use_index=False" in plan
    plan = dataset.scanner(nearest={**nearest, "metric": "dot"}).explain_plan(verbose=True)
    assert "no vector index of the column has this metric" in plan


def test_some_segments(tmp_path: Path) -> None:
    queries = made(tmp_path, "flat")
    lance.write_dataset(table(vectors(300, 3), ROWS), tmp_path, mode="append")
    lance.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=0)
    lance.write_dataset(table(vectors(100, 4), 2 * ROWS), tmp_path, mode="append")
    dataset = lance_dataset.dataset(tmp_path)
    ids = [each.segment.metadata.uuid for each in segments_of(dataset)]
    assert len(ids) == 2
    for chosen in (ids[:1], ids[1:], ids):
        for query in queries:
            asked = {"nearest": {"column": "v", "q": query, "k": 7, "nprobes": 2}, "columns": ["id", "_distance"]}
            mine = dataset.scanner(**asked, index_segments=chosen).to_table()
            other = lance.dataset(tmp_path).scanner(**asked, index_segments=chosen).to_table()
            assert mine["id"].to_pylist() == other["id"].to_pylist()
    nearest = {"column": "v", "q": queries[0]}
    for wrong in ([], ["x"], ["00000000-0000-0000-0000-000000000000"]):
        with pytest.raises(InvalidInputError):
            dataset.scanner(nearest=nearest, index_segments=wrong)
    with pytest.raises(UnsupportedError, match="only supported for vector search"):
        dataset.scanner(index_segments=ids)


def segments_of(dataset: Any) -> Any:
    indices = vector_indices(dataset.snapshot.reader)
    assert indices is not None
    return next(iter(indices.by_field.values()))[0].segments


def test_prewarming(tmp_path: Path) -> None:
    queries = made(tmp_path, "rq5")
    dataset = lance_dataset.dataset(tmp_path)
    dataset.prewarm_index("v_idx")
    assert dataset.to_table(nearest={"column": "v", "q": queries[0]}).num_rows == 10


def test_few_rows_in_the_first_partitions(tmp_path: Path) -> None:
    """Further partitions are searched until there are k rows."""
    queries = made(tmp_path, "flat")
    dataset = lance_dataset.dataset(tmp_path)
    nearest = {"column": "v", "q": queries[0], "k": ROWS, "minimum_nprobes": 1}
    assert dataset.to_table(nearest=nearest, columns=["id"]).num_rows == ROWS
    assert dataset.to_table(nearest={**nearest, "maximum_nprobes": 2}, columns=["id"]).num_rows < ROWS
    few = dataset.to_table(nearest={**nearest, "k": 5}, columns=["id"], filter="id in (3, 700)", prefilter=True)
    assert sorted(few["id"].to_pylist()) == [3, 700]


@pytest.mark.parametrize("name", ["pq8", "legacy", "rq5"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    """Any damage gives an error of the library, or a result."""
    queries = made(tmp_path, name)
    rng = np.random.default_rng(5)
    (folder,) = (tmp_path / "_indices").iterdir()
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for attempt in range(25):
            data = bytearray(whole)
            for _ in range(8):
                place = int(
                    rng.integers(0, len(data)) if attempt % 2 else rng.integers(max(len(data) - 2000, 0), len(data))
                )
                data[place] = int(rng.integers(0, 256))
            path.unlink()
            path.write_bytes(bytes(data[: len(data) - 9 * (attempt == 3)]))
            try:
                found = lance_dataset.dataset(tmp_path).to_table(
                    nearest={"column": "v", "q": queries[0]}, columns=["id"]
                )
                assert found.num_rows <= 10
            except (lance_dataset.errors.LanceError, ValueError, OSError):
                pass
        path.unlink()
        path.write_bytes(whole)


def test_wrong_queries(tmp_path: Path) -> None:
    made(tmp_path, "flat")
    dataset = lance_dataset.dataset(tmp_path)
    with pytest.raises(InvalidInputError, match="does not match the size 16"):
        dataset.to_table(nearest={"column": "v", "q": np.zeros(3)})
    with pytest.raises(InvalidInputError, match="nprobes must be >= 1"):
        dataset.to_table(nearest={"column": "v", "q": np.zeros(16), "nprobes": 0})
    with pytest.raises(InvalidInputError, match="NaN or null at position 0"):
        dataset.to_table(nearest={"column": "v", "q": np.full(16, np.nan)})


def test_index_of_another_column(tmp_path: Path) -> None:
    """Files that are not of the column are refused."""
    made(tmp_path / "a", "flat")
    narrow = vectors(ROWS)[:, :8].copy()
    lance.write_dataset(table(narrow), tmp_path / "b").create_index("v", "IVF_FLAT", metric="l2", num_partitions=5)
    (source,), (target,) = ((tmp_path / name / "_indices").iterdir() for name in "ab")
    for path in target.iterdir():
        path.unlink()
        path.write_bytes((source / path.name).read_bytes())
    with pytest.raises(CorruptFileError, match="16 elements"):
        lance_dataset.dataset(tmp_path / "b").to_table(nearest={"column": "v", "q": np.zeros(8)})
