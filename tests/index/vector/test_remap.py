"""Tests of vector indices after a compaction, compared with those that the reference compacts."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

import lance_dataset
from lance_dataset._proto import vector_index_pb2
from lance_dataset.index.files import IndexFolder
from lance_dataset.io.resolve import resolve

ROWS, DIMENSION = 600, 16


@dataclass(frozen=True)
class Case:
    """An index.

    Attributes
    ----------
    kind
        Its type.
    options
        More parameters of `create_index`.
    element
        Type of the values of vectors.
    version
        File version of the table.
    """

    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    element: str = "float32"
    version: str = "2.2"

    def __str__(self) -> str:
        values = "-".join(str(value) for value in self.options.values())
        return "-".join(filter(None, [self.kind, values, self.element, self.version]))


PQ = {"num_sub_vectors": 4}
CASES = [
    Case("IVF_FLAT"),
    Case("IVF_FLAT", {"metric": "cosine"}, "float64"),
    Case("IVF_FLAT", {"metric": "dot"}, "float16", "2.1"),
    Case("IVF_FLAT", {"metric": "hamming"}, "uint8"),
    Case("IVF_PQ", PQ),
    Case("IVF_PQ", {**PQ, "num_bits": 4, "metric": "cosine"}, version="2.1"),
    Case("IVF_PQ", {**PQ, "skip_transpose": True}),
    Case("IVF_PQ", {**PQ, "metric": "dot"}, "float16", "2.0"),
    Case("IVF_PQ", {**PQ, "index_file_version": "legacy"}),
    Case("IVF_PQ", {**PQ, "index_file_version": "legacy", "metric": "cosine"}, version="legacy"),
    Case("IVF_PQ", PQ, version="legacy"),
    Case("IVF_SQ", {}, "float32", "2.0"),
    Case("IVF_SQ", {"metric": "dot"}),
    Case("IVF_RQ"),
    Case("IVF_RQ", {"num_bits": 1, "metric": "cosine"}, version="2.1"),
    Case("IVF_RQ", {"num_bits": 9, "skip_transpose": True}),
]
GRAPHS = [
    Case("IVF_HNSW_FLAT"),
    Case("IVF_HNSW_FLAT", {"metric": "cosine"}, "float16", "2.0"),
    Case("IVF_HNSW_FLAT", {"metric": "hamming"}, "uint8"),
    Case("IVF_HNSW_FLAT", {"metric": "dot"}, "float64", "2.1"),
    Case("IVF_HNSW_SQ", {}, "float32", "2.1"),
    Case("IVF_HNSW_SQ", {"metric": "cosine"}),
    Case("IVF_HNSW_PQ", PQ),
    Case("IVF_HNSW_PQ", {**PQ, "num_bits": 4, "metric": "dot"}),
]


def numbers(case: Case, count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if case.element == "uint8":
        return generator.integers(0, 256, (count, DIMENSION), dtype=np.uint8)
    centers = np.random.default_rng(99).standard_normal((12, DIMENSION))
    found = centers[generator.integers(0, 12, count)] + generator.standard_normal((count, DIMENSION)) / 2
    return found.astype(case.element)


def rows(case: Case, count: int, first: int, nulls: bool = True) -> pa.Table:
    values = numbers(case, count, first)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)
    if nulls:
        vectors = pa.array(
            [None if row % 97 == 5 else value for row, value in enumerate(vectors.to_pylist())], vectors.type
        )
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "v": vectors})


def create(path: Path, case: Case, table: pa.Table | None = None) -> Any:
    table = rows(case, ROWS, 0) if table is None else table
    version = {"data_storage_version": case.version}
    dataset = lance.write_dataset(table, path, max_rows_per_file=-(-table.num_rows // 4), **version)
    return dataset.create_index("v", case.kind, num_partitions=3, **case.options)


def compacted(path: Path, case: Case, change: Callable[[Any], Any] | None = None) -> tuple[Any, Any]:
    """Return the table after a compaction by this package, and a copy after one by the reference."""
    if change is not None:
        change(lance.dataset(path))
    other = path.with_name("theirs")
    shutil.copytree(path, other)
    lance_dataset.dataset(path).optimize.compact_files()
    lance.dataset(other).optimize.compact_files()
    return lance.dataset(path), lance.dataset(other)


def segments(dataset: Any) -> list[Path]:
    return [Path(dataset.uri) / "_indices" / index["uuid"] for index in dataset.list_indices()]


def ivf(file: Path) -> vector_index_pb2.IVF:
    store, root = resolve(file.parent)
    table = IndexFolder(store, root).open(file.name)
    data = table.global_buffer("lance:ivf")
    assert data is not None
    return vector_index_pb2.IVF.FromString(data)


def assert_same_files(ours: Any, theirs: Any, case: Case) -> None:
    """Check that both have the same rows, codes and partitions in the same order.

    The reference transposes codes that were not transposed.
    """
    columns = ["_rowid"] if "skip_transpose" in case.options else None
    for left, right in zip(segments(ours), segments(theirs), strict=True):
        assert sorted(file.name for file in left.iterdir()) == sorted(file.name for file in right.iterdir())
        if not (left / "auxiliary.idx").exists():
            assert (left / "index.idx").stat().st_size == (right / "index.idx").stat().st_size
            continue
        tables = [LanceFileReader(str(folder / "auxiliary.idx")).read_all().to_table() for folder in (left, right)]
        left_rows, right_rows = (table.select(columns or table.column_names) for table in tables)
        assert left_rows.equals(right_rows)
        for name in ("auxiliary.idx", "index.idx"):
            mine, other = ivf(left / name), ivf(right / name)
            if name == "auxiliary.idx" or "HNSW" not in str(ours.stats.index_stats("v_idx")["index_type"]):
                assert list(mine.lengths) == list(other.lengths)
                assert list(mine.offsets) == list(other.offsets)
            assert mine.centroids_tensor == other.centroids_tensor
            assert mine.loss == other.loss


def query(dataset: Any, vector: np.ndarray, **options: Any) -> pa.Table:
    nearest = {"column": "v", "q": vector, "k": 10, "nprobes": 3, **options}
    scanner = dataset.scanner(columns=["id", "_distance"], nearest=nearest, with_row_id=True)
    assert "ANN" in scanner.explain_plan() or options.get("use_index") is False
    return scanner.to_table()


def assert_same_answers(ours: Any, theirs: Any, case: Case) -> None:
    assert ours.count_rows() == theirs.count_rows()
    assert [index["fragment_ids"] for index in ours.list_indices()] == [
        index["fragment_ids"] for index in theirs.list_indices()
    ]
    for vector in numbers(case, 6, 12345):
        assert query(ours, vector).equals(query(theirs, vector))


def assert_as_near(ours: Any, theirs: Any, case: Case) -> None:
    """Check that searches find stored vectors in the remapped graphs as well as in graphs that are built anew."""
    found = {0: 0, 1: 0}
    vectors = numbers(case, 20, 12345)
    for vector in vectors:
        everything = [query(dataset, vector, ef=ROWS)["_distance"].to_numpy() for dataset in (ours, theirs)]
        assert everything[0].sum() <= everything[1].sum() + 1e-4
        for place, dataset in enumerate((ours, theirs)):
            found[place] += np.count_nonzero(query(dataset, vector)["_distance"].to_numpy() <= everything[0][-1])
    assert found[0] >= found[1] - 0.02 * len(vectors) * 10


@pytest.mark.parametrize("case", [CASES[0], CASES[6], CASES[8], CASES[13]], ids=str)
def test_rows_that_moved(tmp_path: Path, case: Case) -> None:
    create(tmp_path / "ours", case)
    ours, theirs = compacted(tmp_path / "ours", case)
    assert_same_files(ours, theirs, case)
    assert_same_answers(ours, theirs, case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_that_vanished(tmp_path: Path, case: Case) -> None:
    create(tmp_path / "ours", case)
    ours, theirs = compacted(tmp_path / "ours", case, lambda dataset: dataset.delete("id % 5 = 0 OR id > 520"))
    assert_same_files(ours, theirs, case)
    assert_same_answers(ours, theirs, case)


@pytest.mark.parametrize(
    ("case", "deleted"), list(zip(GRAPHS, itertools.cycle(["id % 5 = 0", "id % 8 != 0"]))), ids=str
)
def test_graphs_whose_nodes_vanished(tmp_path: Path, case: Case, deleted: str) -> None:
    create(tmp_path / "ours", case)
    ours, theirs = compacted(tmp_path / "ours", case, lambda dataset: dataset.delete(deleted))
    assert_same_files(ours, theirs, case)
    assert_as_near(ours, theirs, case)


def test_a_graph_whose_nodes_moved(tmp_path: Path) -> None:
    create(tmp_path / "ours", GRAPHS[0])
    before = next((tmp_path / "ours").glob("_indices/*/index.idx")).read_bytes()
    ours, theirs = compacted(tmp_path / "ours", GRAPHS[0])
    assert (segments(ours)[0] / "index.idx").read_bytes() == before
    assert_as_near(ours, theirs, GRAPHS[0])


@pytest.mark.parametrize("case", [CASES[0], CASES[8], CASES[13], GRAPHS[4]], ids=str)
@pytest.mark.parametrize("left", [0, 2])
def test_hardly_any_rows_stay(tmp_path: Path, case: Case, left: int) -> None:
    create(tmp_path / "ours", case, rows(case, ROWS, 0, nulls=False))
    lance.write_dataset(rows(case, 50, ROWS), tmp_path / "ours", mode="append")
    ours, theirs = compacted(tmp_path / "ours", case, lambda dataset: dataset.delete(f"id >= {left} AND id < {ROWS}"))
    assert_same_files(ours, theirs, case)
    vector = numbers(case, 1, 3)[0]
    nearest = {"column": "v", "q": vector, "k": 60, "nprobes": 3}
    for fast in (False, True):
        tables = [
            dataset.to_table(columns=["id", "_distance"], nearest=nearest, fast_search=fast)
            for dataset in (ours, theirs)
        ]
        assert tables[0].equals(tables[1])


@pytest.mark.parametrize("case", [CASES[4], CASES[13], GRAPHS[4]], ids=str)
def test_several_segments_and_rows_without(tmp_path: Path, case: Case) -> None:
    create(tmp_path / "ours", case)
    for first in (2000, 3000):
        dataset = lance.write_dataset(rows(case, 300, first), tmp_path / "ours", mode="append")
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset = lance.write_dataset(rows(case, 40, 4000), tmp_path / "ours", mode="append")
    assert len(dataset.list_indices()) == 3
    ours, theirs = compacted(tmp_path / "ours", case, lambda dataset: dataset.delete("id % 4 = 1"))
    assert len(ours.list_indices()) == len(theirs.list_indices())
    if case in GRAPHS:
        assert_as_near(ours, theirs, case)
    else:
        assert_same_answers(ours, theirs, case)


@pytest.mark.parametrize("case", [CASES[0], CASES[4], CASES[13], GRAPHS[0]], ids=str)
def test_the_reference_goes_on_and_we_after_it(tmp_path: Path, case: Case) -> None:
    create(tmp_path / "ours", case)
    ours, _ = compacted(tmp_path / "ours", case, lambda dataset: dataset.delete("id % 5 = 0"))
    lance.write_dataset(rows(case, 300, 5000), tmp_path / "ours", mode="append")
    ours = lance.dataset(tmp_path / "ours")
    ours.optimize.optimize_indices(num_indices_to_merge=1)
    ours.delete("id % 5 = 1")
    ours.optimize.compact_files()
    lance.write_dataset(rows(case, 30, 6000), tmp_path / "ours", mode="append")
    ours = lance.dataset(tmp_path / "ours")
    ours.delete("id % 5 = 2")
    lance_dataset.dataset(tmp_path / "ours").optimize.compact_files()
    ours = lance.dataset(tmp_path / "ours")
    if not case.kind.endswith("FLAT"):
        assert query(ours, numbers(case, 1, 3)[0]).num_rows == 10
        return
    for vector in numbers(case, 6, 12345):
        exact = query(ours, vector, use_index=False, metric=case.options.get("metric", "l2"))
        assert query(ours, vector, refine_factor=10)["id"].equals(exact["id"])


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
def test_several_vectors_a_row(tmp_path: Path, kind: str) -> None:
    case = Case(kind, {"metric": "cosine", **(PQ if kind == "IVF_PQ" else {})})
    inner = pa.FixedSizeListArray.from_arrays(pa.array(numbers(case, ROWS, 0).ravel()), DIMENSION)
    offsets = pa.array(range(0, ROWS + 1, 3), pa.int32())
    count = len(offsets) - 1
    table = pa.table({"id": pa.array(range(count), pa.int64()), "v": pa.ListArray.from_arrays(offsets, inner)})
    create(tmp_path / "ours", case, table)
    ours, theirs = compacted(tmp_path / "ours", case, lambda dataset: dataset.delete("id % 5 = 0"))
    assert_same_files(ours, theirs, case)
    for vector in numbers(case, 4, 12345):
        tables = [query(dataset, vector, refine_factor=5) for dataset in (ours, theirs)]
        if "HNSW" not in kind:
            assert tables[0].equals(tables[1])
        assert not any(row % 5 == 0 for row in tables[0]["id"].to_pylist())


def test_an_index_that_was_never_trained(tmp_path: Path) -> None:
    lance.write_dataset(rows(CASES[4], ROWS, 0), tmp_path / "ours", max_rows_per_file=200)
    dataset = lance.dataset(tmp_path / "ours")
    dataset.create_index("v", "IVF_PQ", num_partitions=3, train=False, **PQ)
    ours, theirs = compacted(tmp_path / "ours", CASES[4], lambda dataset: dataset.delete("id % 5 = 0"))
    for dataset in (ours, theirs):
        assert [index["fragment_ids"] for index in dataset.list_indices()] == [set()]


@pytest.mark.parametrize("merged", [False, True])
def test_segments_of_several_workers(tmp_path: Path, merged: bool) -> None:
    case = Case("IVF_PQ", PQ)
    dataset = lance.write_dataset(rows(case, ROWS, 0), tmp_path / "ours", max_rows_per_file=ROWS // 4)
    models = {
        "ivf_centroids": numbers(case, 3, 1),
        "pq_codebook": pa.FixedSizeListArray.from_arrays(pa.array(numbers(case, 256, 2).ravel()), 4),
        "num_partitions": 3,
    }
    parts = [
        dataset.create_index_uncommitted("v", case.kind, fragment_ids=ids, **PQ, **models) for ids in ([0, 1], [2, 3])
    ]
    if merged:
        parts = [dataset.merge_existing_index_segments(parts)]
    dataset.commit_existing_index_segments("v_idx", "v", parts)
    ours, theirs = compacted(tmp_path / "ours", case, lambda dataset: dataset.delete("id % 5 = 0"))
    assert len(ours.list_indices()) == len(theirs.list_indices())
    assert_same_answers(ours, theirs, case)
