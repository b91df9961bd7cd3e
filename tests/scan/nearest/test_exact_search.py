"""Tests of vector search without an index against the reference and NumPy: types, metrics, nulls, filters, changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

import lance_dataset
from lance_dataset.dataset import serialize_row_addrs
from lance_dataset.errors import InvalidInputError

DIMENSION = 12
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
METRICS = ("l2", "cosine", "dot")
VERSIONS = ("legacy", "2.0", "2.1", "2.2")


def lists(values: NDArray[Any], **options: Any) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1], **options)


def nested(values: NDArray[Any], lengths: NDArray[np.int64]) -> pa.ListArray:
    """Return lists of vectors, one after the other; every seventh list is null."""
    offsets = np.cumsum(np.append(0, lengths))
    nulls = np.arange(len(offsets)) % 7 == 6
    nulls[-1] = False
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32), mask=nulls), lists(values[: offsets[-1]]))


def both(path: Path) -> tuple[Any, Any]:
    return lance_dataset.dataset(path), lance.dataset(path)


def assert_same_rows(ours: pa.Table, theirs: pa.Table, *, tolerance: float = 1e-5) -> None:
    """Assert equal tables, whose distances may differ by rounding."""
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.num_rows == theirs.num_rows
    for name in ours.schema.names:
        if name == "_distance":
            expected = theirs[name].to_numpy()
            np.testing.assert_allclose(ours[name].to_numpy(), expected, rtol=tolerance, atol=tolerance)
        else:
            assert ours[name].to_pylist() == theirs[name].to_pylist(), name


def search_both(datasets: tuple[Any, Any], nearest: dict[str, Any], **options: Any) -> pa.Table:
    """Search with both implementations, and return the rows that both find."""
    ours, theirs = (dataset.scanner(nearest=nearest, **options).to_table() for dataset in datasets)
    assert_same_rows(ours, theirs, tolerance=2e-3 if "f16" in nearest["column"] else 1e-5)
    return ours


def distances(numbers: NDArray[np.float64], query: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    if metric == "l2":
        return ((numbers - query) ** 2).sum(axis=1)
    products = numbers @ query
    if metric == "dot":
        return 1 - products
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 - products / np.linalg.norm(numbers, axis=1) / np.linalg.norm(query)


@pytest.fixture(scope="module", params=VERSIONS)
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Vectors of all types that the reference searches, in several fragments; some are null, or have odd values."""
    rng = np.random.default_rng(1)
    rows = 500
    numbers = rng.standard_normal((rows, DIMENSION))
    numbers[3], numbers[4, 5], numbers[5, 2], numbers[6, 1] = 0, np.nan, np.inf, -np.inf
    missing = None if request.param == "legacy" else pa.array(np.arange(rows) % 11 == 10)
    columns: dict[str, Any] = {name: lists(numbers.astype(kind), mask=missing) for name, kind in FLOATS.items()}
    columns["u8"] = lists(rng.integers(0, 256, (rows, DIMENSION)).astype(np.uint8), mask=missing)
    columns["id"], columns["group"] = pa.array(range(rows)), pa.array(np.arange(rows) % 6)
    if request.param not in ("legacy", "2.0"):
        inner = pa.StructArray.from_arrays([columns["f32"]], names=["v"])
        columns["st"] = inner
        columns["many"] = nested(rng.standard_normal((2000, DIMENSION)).astype(np.float32), np.arange(rows) % 4)
        columns["many_u8"] = nested(rng.integers(0, 256, (2000, 3)).astype(np.uint8), np.arange(rows) % 4)
    path = tmp_path_factory.mktemp("vectors") / "t"
    lance.write_dataset(pa.table(columns), path, data_storage_version=request.param, max_rows_per_file=180)
    return both(path)


@pytest.mark.parametrize("metric", [*METRICS, None])
@pytest.mark.parametrize("column", [*FLOATS, "st.v"])
def test_floats(tables: tuple[Any, Any], column: str, metric: str | None) -> None:
    if column.split(".")[0] not in tables[0].schema.names:
        return
    query = np.random.default_rng(2).standard_normal(DIMENSION).astype(np.float32)
    nearest = {"column": column, "q": query, "metric": metric}
    found = search_both(tables, nearest, columns=["id"], with_row_id=True)
    assert found.num_rows == 10
    finite = {**nearest, "k": 1000, "distance_range": (-1e6, 1e6)}
    search_both(tables, finite, columns=["id"])
    every = tables[0].to_table(columns=["id"], nearest={**nearest, "k": 1000})
    theirs = tables[1].to_table(columns=["id"], nearest={**nearest, "k": 1000})
    assert sorted(every["id"].to_pylist()) == sorted(theirs["id"].to_pylist())


def test_bytes(tables: tuple[Any, Any]) -> None:
    query = np.random.default_rng(3).integers(0, 256, DIMENSION)
    for metric in (None, "hamming"):
        search_both(tables, {"column": "u8", "q": query, "k": 1000, "metric": metric}, columns=["id"])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [1, 3])
def test_lists_of_vectors(tables: tuple[Any, Any], metric: str, count: int) -> None:
    if "many" not in tables[0].schema.names:
        return
    query = np.random.default_rng(4).standard_normal((count, DIMENSION)).astype(np.float32)
    nearest = {"column": "many", "q": query[0] if count == 1 else query, "metric": metric, "k": 1000}
    found = search_both(tables, nearest, columns=["id"])
    assert "query_index" not in found.schema.names
    assert 200 < found.num_rows < 375
    search_both(tables, {**nearest, "k": 5}, columns=["id", "group"], filter="group = 1", prefilter=True)
    search_both(tables, {"column": "many_u8", "q": [[1, 2, 3], [200, 100, 5]], "k": 70}, columns=["id"])


@pytest.mark.parametrize("prefilter", [True, False])
def test_filters(tables: tuple[Any, Any], prefilter: bool) -> None:
    query = np.random.default_rng(5).standard_normal(DIMENSION)
    nearest = {"column": "f32", "q": query, "k": 40}
    for condition in (
        "group = 1",
        "group > 0",
        "id < 3",
        "id < 0",
        "id = 77",
        "id IN (1, 2, 300)",
        pc.field("id") > 250,
    ):
        options = {"filter": condition, "prefilter": prefilter}
        search_both(tables, nearest, columns=["id"], **options)
        search_both(tables, {**nearest, "q": np.stack([query, -query])}, columns=["id"], **options)
    if not prefilter:
        search_both(tables, nearest, columns=["id"], filter="_distance < 15 AND group = 2")


def test_batches_of_queries(tables: tuple[Any, Any]) -> None:
    queries = np.random.default_rng(6).standard_normal((9, DIMENSION)).astype(np.float32)
    for metric in METRICS:
        found = search_both(tables, {"column": "f32", "q": queries, "k": 7, "metric": metric}, columns=["id"])
        assert found.schema.field("query_index") == pa.field("query_index", pa.int32(), nullable=False)
        assert found["query_index"].to_pylist() == [number for number in range(9) for _ in range(7)]
    search_both(tables, {"column": "f64", "q": queries.tolist(), "k": 3}, limit=5, offset=8, columns=["id"])
    search_both(tables, {"column": "f32", "q": queries, "k": 3}, filter="query_index = 2", columns=["id"])
    search_both(tables, {"column": "f32", "q": queries, "k": 3}, columns=["query_index"])
    search_both(tables, {"column": "f32", "q": queries, "k": 3}, columns=["group", "query_index"])


def test_queries_that_are_no_numbers_are_refused(tables: tuple[Any, Any]) -> None:
    """The reference finds no rows for a query, and rows whose distance is NaN for one of a batch."""
    queries = np.ones((3, DIMENSION))
    queries[1, 2] = np.nan
    for column in ("f32", "f64", "f16"):
        for query in (queries[1], [1, 1, None, *queries[0, 3:]], pa.array([1, 1, None, *queries[0, 3:]])):
            with pytest.raises(InvalidInputError, match=f"0 for column '{column}' has NaN or null at position 2"):
                tables[0].scanner(nearest={"column": column, "q": query})
        with pytest.raises(InvalidInputError, match=r"vector 1 .* at position 2"):
            tables[0].to_table(nearest={"column": column, "q": queries, "k": 2}, columns=[])
    assert tables[0].to_table(nearest={"column": "f32", "q": np.zeros(DIMENSION), "metric": "cosine"}).num_rows == 0


@pytest.mark.parametrize("element", ["bf16", "i8", "u8", "f16", "f32", "f64"])
@pytest.mark.parametrize("metric", METRICS)
def test_types_beyond_the_reference(tmp_path: Path, element: str, metric: str) -> None:
    """Vectors of bfloat16, int8 and uint8 have the same metrics as floats."""
    rng = np.random.default_rng(7)
    numbers = np.round(rng.standard_normal((300, 20)) * 20)
    query = np.round(rng.standard_normal(20) * 20)
    field = None
    if element == "bf16":
        bits = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        numbers = (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        storage = pa.Array.from_buffers(pa.binary(2), bits.size, [None, pa.py_buffer(bits)])
        metadata = {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}
        field = pa.field("v", pa.list_(pa.field("item", pa.binary(2), metadata=metadata), 20))
        column = pa.FixedSizeListArray.from_arrays(storage, type=field.type)
    else:
        kind = {"i8": np.int8, "u8": np.uint8, **FLOATS}[element]
        numbers = np.abs(numbers) if element == "u8" else numbers
        column = lists(numbers.astype(kind))
        field = pa.field("v", column.type)
    table = pa.table([column, pa.array(range(300))], schema=pa.schema([field, pa.field("id", pa.int64())]))
    dataset = lance_dataset.write_dataset(table, tmp_path / "t")
    found = dataset.to_table(columns=["id"], nearest={"column": "v", "q": query, "k": 25, "metric": metric})
    expected = distances(numbers, query, metric)
    order = np.argsort(expected, kind="stable")[:25]
    np.testing.assert_allclose(found["_distance"].to_numpy(), expected[order], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(expected[found["id"].to_numpy()], expected[order], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("stable", [False, True])
def test_changed_tables(tmp_path: Path, stable: bool) -> None:
    """Deleted and updated rows, many small fragments, and equal distances, which are ordered by row id."""
    rng = np.random.default_rng(8)
    values = rng.integers(0, 3, (900, 4)).astype(np.float32)
    table = pa.table({"id": pa.array(range(900)), "v": lists(values), "x": pa.array(np.arange(900) % 10)})
    theirs = lance.write_dataset(table, tmp_path, max_rows_per_file=40, enable_stable_row_ids=stable)
    theirs.delete("id % 7 = 0")
    theirs.update({"x": "x + 100"}, where="id % 5 = 1")
    datasets = both(tmp_path)
    for k in (1, 30, 2000):
        nearest = {"column": "v", "q": [1.0, 1.0, 0.0, 2.0], "k": k}
        search_both(datasets, nearest, columns=["id", "x"], with_row_id=True, with_row_address=True)
        search_both(datasets, nearest, columns=["id"], with_row_id=True, filter="x > 100", prefilter=True)
        search_both(datasets, nearest, columns=["id"], with_row_id=True, filter="x > 100")
        search_both(datasets, {**nearest, "q": [[1.0, 1, 0, 2], [0.0, 0, 0, 0]]}, columns=["id"], with_row_id=True)
        for chosen in ([3], [9, 2, 21], []):
            scanners = [
                dataset.scanner(
                    columns=["id"],
                    nearest=nearest,
                    prefilter=True,
                    fragments=[each for each in dataset.get_fragments() if each.fragment_id in chosen],
                )
                for dataset in datasets
            ]
            if chosen:
                assert_same_rows(*(scanner.to_table() for scanner in scanners))
            else:
                assert scanners[0].count_rows() == 0
    theirs.optimize.compact_files()
    search_both(both(tmp_path), {"column": "v", "q": [1.0, 1.0, 0.0, 2.0], "k": 60}, columns=["id"], with_row_id=True)


def test_scalar_indices_answer_the_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    table = pa.table({"id": pa.array(range(4000)), "v": lists(rng.standard_normal((4000, 8)).astype(np.float32))})
    lance.write_dataset(table, tmp_path, max_rows_per_file=1500).create_scalar_index("id", "BTREE")
    lance.write_dataset(table.slice(0, 100), tmp_path, mode="append")
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    datasets = both(tmp_path)
    for condition in ("id = 50", "id < 200", "id > 3000 AND id < 3300", "id % 2 = 0", "id IN (5, 1700, 3999)"):
        options = {"filter": condition, "prefilter": True, "columns": ["id"], "with_row_id": True}
        search_both(datasets, {"column": "v", "q": np.zeros(8), "k": 20}, **options)
    options = {"filter": "id < 200", "prefilter": True, "nearest": {"column": "v", "q": np.zeros(8)}}
    assert "ScalarIndexQuery" in datasets[0].scanner(**options).explain_plan()


def test_row_sets_and_ranges(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(30)), "v": lists(np.arange(60, dtype=np.float32).reshape(30, 2))})
    dataset = lance_dataset.write_dataset(table, tmp_path, max_rows_per_file=10)
    nearest = {"column": "v", "q": [0.0, 0.0], "k": 4}
    chosen = serialize_row_addrs([3, 7, 1 << 32, (2 << 32) + 9])
    found = dataset.scanner(columns=["id"], nearest=nearest, row_addr_allowlist=chosen).to_table()
    assert found["id"].to_pylist() == [3, 7, 10, 29]
    found = dataset.scanner(columns=["id"], nearest=nearest, row_addr_blocklist=chosen, filter="id > 2").to_table()
    assert found["id"].to_pylist() == [4]
    blocked = {"row_addr_blocklist": chosen, "filter": "id > 2", "prefilter": True}
    assert dataset.scanner(columns=["id"], nearest=nearest, **blocked).to_table()["id"].to_pylist() == [4, 5, 6, 8]


def test_vector_indices_give_the_metric_and_the_rows_of_fast_search(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    values = rng.standard_normal((700, 8)).astype(np.float32)
    table = pa.table({"id": pa.array(range(700)), "v": lists(values)})
    lance.write_dataset(table.slice(0, 600), tmp_path).create_index("v", "IVF_FLAT", metric="cosine", num_partitions=2)
    lance.write_dataset(table.slice(600), tmp_path, mode="append")
    datasets = both(tmp_path)
    for extra in ({}, {"metric": "l2"}, {"metric": "cosine"}, {"use_index": False}, {"metric": "dot"}):
        nearest = {"column": "v", "q": values[650], "k": 12, "nprobes": 2, **extra}
        search_both(datasets, nearest, columns=["id"])
        search_both(datasets, nearest, columns=["id"], fast_search=True)
        search_both(datasets, nearest, columns=["id"], fast_search=True, filter="id > 20", prefilter=True)
    plan = datasets[0].scanner(nearest={"column": "v", "q": values[0]}).explain_plan(verbose=True)
    assert "ANNSubIndex: name=v_idx, k=10, deltas=1, metric=Cosine" in plan
    assert "IVF_FLAT, partitions=2" in plan
    assert "united with 1 fragments" in plan


def test_null_elements_count_as_zeros(tmp_path: Path) -> None:
    """This is so in the reference; null vectors in lists are left out, which it takes for zeros."""
    items = pa.array([None if number % 5 == 0 else float(number) for number in range(40)], pa.float32())
    table = pa.table({"id": pa.array(range(10)), "v": pa.FixedSizeListArray.from_arrays(items, 4)})
    lance.write_dataset(table, tmp_path / "a", data_storage_version="2.1")
    search_both(both(tmp_path / "a"), {"column": "v", "q": [0.0] * 4, "k": 20}, columns=["id"])
    kind = pa.list_(pa.list_(pa.float32(), 2))
    rows = pa.array([[[1, 2], None, [3, 4]], None, [], [None], [[5, 6]]], kind)
    dataset = lance_dataset.write_dataset(pa.table({"mv": rows}), tmp_path / "b")
    found = dataset.to_table(columns=["_rowaddr"], nearest={"column": "mv", "q": [0, 0]})
    assert found.to_pydict() == {"_rowaddr": [0, 4], "_distance": [5.0, 61.0]}
    nan = float("nan")
    rows = pa.array([[[0, 0], [1, 1]], [[nan, 1], [1, 2]], [[0, 0]], [[nan, 0]]], kind)
    dataset = lance_dataset.write_dataset(pa.table({"mv": rows}), tmp_path / "c")
    found = dataset.to_table(columns=["_rowaddr"], nearest={"column": "mv", "q": [1, 1], "metric": "cosine"})
    assert found["_rowaddr"].to_pylist() == [0, 1]


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_small_and_empty_tables(tmp_path: Path, rows: int) -> None:
    values = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "v": lists(values.reshape(-1, 3))})
    lance.write_dataset(table, tmp_path)
    datasets = both(tmp_path)
    search_both(datasets, {"column": "v", "q": [0, 0, 0]})
    search_both(datasets, {"column": "v", "q": [[0, 0, 0], [1, 1, 1]]})
    search_both(datasets, {"column": "v", "q": [[0, 0, 0], [1, 1, 1]]}, columns=["id"], filter="id > 3")
    datasets[1].delete("true")
    assert lance_dataset.dataset(tmp_path).to_table(nearest={"column": "v", "q": [0, 0, 0]}).num_rows == 0


def test_columns_that_are_missing_in_fragments(tmp_path: Path) -> None:
    """A column that was added later is null, or absent, in older fragments."""
    dataset = lance_dataset.write_dataset(pa.table({"id": pa.array(range(4))}), tmp_path)
    dataset.add_columns(pa.field("v", pa.list_(pa.float32(), 2)))
    assert dataset.to_table(nearest={"column": "v", "q": [0, 0]}).num_rows == 0
    more = pa.table({"id": pa.array([4, 5]), "v": lists(np.ones((2, 2), np.float32))})
    dataset.insert(more)
    assert dataset.to_table(columns=["id"], nearest={"column": "v", "q": [0, 0]})["id"].to_pylist() == [4, 5]


def test_threads_share_large_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_dataset.scan.nearest import candidates

    rng = np.random.default_rng(11)
    values = rng.integers(-9, 10, (30_000, 16)).astype(np.float32)
    path = tmp_path / "t"
    lance_dataset.write_dataset(
        pa.table({"id": pa.array(range(30_000)), "v": lists(values)}), path, max_rows_per_file=9000
    )
    monkeypatch.setattr(candidates, "_PARALLEL_COST", 1.0)
    monkeypatch.setattr(candidates, "cpu_count", lambda: 4)
    dataset = lance_dataset.dataset(path)
    query = rng.integers(-9, 10, 16).astype(np.float64)
    expected = np.argsort(distances(values.astype(np.float64), query, "l2"), kind="stable")
    for k in (1, 10, 5000):
        found = dataset.to_table(columns=["id"], nearest={"column": "v", "q": query, "k": k})
        assert found["id"].to_pylist() == expected[:k].tolist()
    kept = expected[expected % 3 == 0]
    found = dataset.to_table(columns=["id"], nearest={"column": "v", "q": query}, filter="id % 3 = 0", prefilter=True)
    assert found["id"].to_pylist() == kept[:10].tolist()
