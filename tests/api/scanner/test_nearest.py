"""Tests of the parameters of vector search and of the options around it, compared with the reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.reference.outcomes import Call, check_call

import lance_dataset
from lance_dataset.dataset import ScannerBuilder

QUERY = [1.0, 2.0, 0.0]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Vectors of small whole numbers, whose distances are exact."""
    rng = np.random.default_rng(1)
    rows = 60
    values = rng.integers(-4, 5, (rows, 3))

    def vectors(kind: Any) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.astype(kind).ravel()), 3)

    table = pa.table(
        {
            "id": pa.array(range(rows)),
            "v": vectors(np.float32),
            "f64": vectors(np.float64),
            "u8": pa.FixedSizeListArray.from_arrays(pa.array(np.abs(values).astype(np.uint8).ravel()), 3),
            "i32": vectors(np.int32),
            "x": pa.array(np.arange(rows) % 5),
            "text": pa.array(["a", "b"] * (rows // 2)),
            "l": pa.array([[1.0]] * rows),
            "st": pa.StructArray.from_arrays([vectors(np.float32)], names=["v"]),
        }
    )
    path = tmp_path_factory.mktemp("nearest") / "t"
    lance.write_dataset(table, path, max_rows_per_file=25)
    return lance_dataset.dataset(path), lance.dataset(path)


def near(options: Mapping[str, Any] = MappingProxyType({}), **parameters: Any) -> Call:
    """Return a search with parameters and options of the scan."""
    nearest = {"column": "v", "q": QUERY, "k": 7, **parameters}
    return lambda lib, ds: ds.scanner(**{"columns": ["id"], "nearest": nearest, **options}).to_table()


PARAMETERS: dict[str, list[Any]] = {
    "column": ["st.v", "`v`", "V", "nope", "text", "l", "st", "i32", "id", None, 3, ["v"]],
    "k": [1, 60, 61, 2**40, 0, -1, None, 1.5, "3", True, np.int64(2)],
    "metric": ["l2", "L2", "euclidean", "dot", "hamming", "bogus", None, 3],
    "nprobes": [1, 20, 0, -1, 1.5],
    "minimum_nprobes": [1, 0],
    "maximum_nprobes": [1, 0],
    "refine_factor": [1, 5, 0, -1, 1.5],
    "use_index": [True, False, None, "x", 3],
    "ef": [1, 100, 0, -1],
    "query_parallelism": [0, 4, -1, -3, "a"],
    "approx_mode": ["fast", "normal", "accurate", "x", None, 3],
    "distance_range": [(5, 9), (None, 9.0), (9, None), (9, 5), (None, None), None, 1, (1,), (1, 2, 3), "ab", [5, 9]],
    "search_effort": [0, 0.5, 1, 1.5, -0.1, float("nan"), "a"],
    "foo": [1],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in PARAMETERS.items() for value in values],
    ids=lambda value: str(value)[:30],
)
def test_parameters(both: tuple[Any, Any], name: str, value: Any) -> None:
    check_call(near(**{name: value}), both)


QUERIES: list[Any] = [
    *(tuple(QUERY), np.array(QUERY), np.array(QUERY, np.float16), np.array([1, 2, 0]), np.array(QUERY, ">f4")),
    *(np.arange(6.0)[::2], [True, False, True], pa.array(QUERY, pa.float32()), pa.array([1, 2, 0])),
    *(pa.chunked_array([pa.array(QUERY, pa.float32())]), pa.scalar(QUERY, pa.list_(pa.float32(), 3))),
    *([QUERY], np.array([QUERY, QUERY]), [QUERY, [0.0, 0.0, 0.0]], [np.array(QUERY), np.zeros(3)]),
    *(QUERY[:2], [QUERY[:2]], [*QUERY, 1.0], [1, 2, [3]], ["a", "b", "c"]),
    *([float("inf"), 0, 0], [1e300] * 3),
    *("abc", None, 3, pa.array([QUERY], pa.list_(pa.float32(), 3))),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda value: f"{type(value).__name__}-{str(value)[:20]!r}")
def test_queries(both: tuple[Any, Any], query: Any) -> None:
    check_call(near(q=query), both)


@pytest.mark.parametrize("query", [[1, 2, 3], [1.5, 2, 3], np.array([1, 2, 3], np.uint8), b"abc"])
@pytest.mark.parametrize("metric", [None, "hamming"])
def test_queries_of_bytes(both: tuple[Any, Any], query: Any, metric: str | None) -> None:
    check_call(near(column="u8", q=query, metric=metric), both)


OPTIONS: dict[str, dict[str, Any]] = {
    "all_columns": {"columns": None},
    "no_columns": {"columns": []},
    "distance": {"columns": ["_distance"]},
    "distance_first": {"columns": ["_distance", "id"]},
    "expression": {"columns": {"a": "id + 1"}},
    "of_the_distance": {"columns": {"a": "_distance * 2"}},
    "as_distance": {"columns": {"_distance": "id"}},
    "renamed": {"columns": {"d": "_distance", "id": "id"}},
    "row_id": {"with_row_id": True},
    "row_address": {"with_row_id": True, "with_row_address": True},
    "row_id_first": {"columns": ["_rowid", "id"]},
    "row_id_twice": {"columns": ["_rowid", "id"], "with_row_id": True},
    "no_score": {"disable_scoring_autoprojection": True},
    "no_score_all_columns": {"columns": None, "disable_scoring_autoprojection": True},
    "limit": {"limit": 2},
    "large_limit": {"limit": 2000},
    "limit_0": {"limit": 0},
    "offset": {"offset": 3},
    "large_offset": {"offset": 30},
    "order": {"order_by": ["id"]},
    "order_limit": {"order_by": ["x", "id"], "columns": ["id", "x"], "limit": 3},
    "order_other": {"order_by": ["x"], "with_row_id": True},
    "order_distance": {"order_by": ["_distance"]},
    "filter": {"filter": "x = 1"},
    "prefilter": {"filter": "x = 1", "prefilter": True},
    "distance_filter": {"filter": "_distance < 9"},
    "distance_prefilter": {"filter": "_distance < 9", "prefilter": True},
    "both_filter": {"filter": "x > 1 AND _distance > 3"},
    "filter_limit": {"filter": "x > 1", "limit": 2},
    "prefilter_limit": {"filter": "x > 1", "prefilter": True, "limit": 2},
    "row_id_filter": {"filter": "_rowid > 30"},
    "row_id_prefilter": {"filter": "_rowid > 30", "prefilter": True},
    "expr_filter": {"filter": {"expr_filter": "x = 1"}},
    "fast": {"fast_search": True},
    "deleted": {"include_deleted_rows": True, "with_row_id": True},
    "batch_size": {"batch_size": 2},
    "no_scalar_index": {"use_scalar_index": False},
    "unknown_filter": {"filter": "nope = 1"},
    "unknown_column": {"columns": ["nope"]},
    "score_column": {"columns": ["_score"]},
    "query_index": {"columns": ["query_index"]},
    "prefilter_text": {"filter": "x = 1", "prefilter": "a"},
}


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_options(both: tuple[Any, Any], name: str, batch: bool) -> None:
    query = [QUERY, [0.0, 0.0, 0.0]] if batch else QUERY
    check_call(near(OPTIONS[name], q=query), both)


CALLS: dict[str, Call] = {
    "count": lambda lib, ds: ds.scanner(nearest={"column": "v", "q": QUERY, "k": 4}).count_rows(),
    "count_filter": lambda lib, ds: ds.scanner(
        nearest={"column": "v", "q": QUERY, "k": 40}, filter="x = 1"
    ).count_rows(),
    "count_batch": lambda lib, ds: ds.scanner(nearest={"column": "v", "q": [QUERY] * 3, "k": 4}).count_rows(),
    "head": lambda lib, ds: ds.scanner(columns=["id"], nearest={"column": "v", "q": QUERY}).head(3),
    "schema": lambda lib, ds: ds.scanner(nearest={"column": "v", "q": [QUERY]}).projected_schema,
    "batches": lambda lib, ds: pa.Table.from_batches(ds.to_batches(nearest={"column": "v", "q": QUERY})),
    "pandas": lambda lib, ds: ds.to_pandas(columns=["id"], nearest={"column": "v", "q": QUERY}),
    "reader": lambda lib, ds: ds.scanner(columns=["id"], nearest={"column": "v", "q": QUERY}).to_reader(),
    "no_query": lambda lib, ds: ds.scanner(nearest={"column": "v"}),
    "no_column": lambda lib, ds: ds.scanner(nearest={"q": QUERY}),
    "empty": lambda lib, ds: ds.scanner(nearest={}),
    "no_dictionary": lambda lib, ds: ds.scanner(nearest=3),
    "fragments": lambda lib, ds: ds.scanner(nearest={"column": "v", "q": QUERY}, fragments=ds.get_fragments()[:1]),
    "probes": near(nprobes=2, minimum_nprobes=3),
    "other_probes": near(minimum_nprobes=3, maximum_nprobes=2),
    "effort": near(nprobes=2, search_effort=0.5),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(both: tuple[Any, Any], name: str) -> None:
    if name == "fragments":
        with pytest.raises(ValueError, match="not supported for fragment scan"):
            CALLS[name](lance_dataset, both[0])
        return
    check_call(CALLS[name], both)


def test_builder(both: tuple[Any, Any]) -> None:
    scanner = ScannerBuilder(both[0]).columns(["id"]).nearest("v", QUERY, 3, metric="dot").to_scanner()
    expected = both[1].to_table(columns=["id"], nearest={"column": "v", "q": QUERY, "k": 3, "metric": "dot"})
    assert scanner.to_table() == expected
    assert [
        batch.num_rows
        for batch in ScannerBuilder(both[0]).nearest("v", QUERY, 5).batch_size(2).to_scanner().to_batches()
    ] == [2, 2, 1]
    assert "3 rows of v nearest to a vector of 3 elements" in repr(scanner)
    assert scanner.dataset_schema == both[0].schema


def test_plans(both: tuple[Any, Any]) -> None:
    nearest = {"column": "v", "q": [QUERY, QUERY], "k": 5, "distance_range": (1, None)}
    options = {"columns": ["id"], "limit": 4, "order_by": ["x"]}
    plan = both[0].scanner(nearest=nearest, filter="x = 1", **options).explain_plan()
    lines = [line.strip(" └─") for line in plan.splitlines()]
    assert [line.split(":")[0] for line in lines] == [
        "ProjectionExec",
        "LanceRead",
        "GlobalLimitExec",
        "SortExec",
        "FilterExec",
        "KNNVectorDistance",
        "LanceRead",
    ]
    assert lines[5] == "KNNVectorDistance: metric=l2, column=v, k=5, queries=2, distances=1 to any, exact"
    plan = both[0].scanner(nearest=nearest, filter="x = 1", prefilter=True, **options).explain_plan(verbose=True)
    assert plan.index("KNN") < plan.index("FilterExec: x = 1") < plan.index("num_fragments=")
    assert "2 query vectors of 3 elements" in plan
    assert "use_index=False" in both[0].scanner(nearest={**nearest, "use_index": False}).explain_plan(verbose=True)
    text = both[0].scanner(nearest=nearest, **options).analyze_plan()
    assert "exact, metrics=[output_rows=60, " in text
    assert "Total: 4 rows in 1 batches" in text
    assert "Total: 4 rows counted" in both[0].scanner(nearest=nearest, **options).analyze_plan(count_rows=True)


def test_statistics_and_progress(both: tuple[Any, Any]) -> None:
    told: list[Any] = []
    seen: list[tuple[int, int]] = []
    nearest = {"column": "v", "q": QUERY}
    table = (
        both[0]
        .scanner(nearest=nearest, scan_stats_callback=told.append)
        .to_table(progress=lambda done, total: seen.append((done, total)))
    )
    assert (table.num_rows, seen[-1]) == (10, (10, 10))
    assert told[0].all_counts["nearest_rows"] == 60


def test_values_that_the_reference_accepts(both: tuple[Any, Any]) -> None:
    """Numbers that no byte can hold and complex numbers are refused, which the reference replaces by others."""
    for query in ([256, 0, 0], [-1, 0, 0], [float("inf"), 0, 0], [1e9, 0, 0]):
        with pytest.raises(ValueError, match="from 0 to 255"):
            both[0].to_table(nearest={"column": "u8", "q": query})
    for query in ([None, 1, 2], [float("nan"), 1, 2]):
        with pytest.raises(ValueError, match="NaN or null at position 0"):
            both[0].to_table(nearest={"column": "v", "q": query})
    with pytest.raises(ValueError, match="one or two dimensions"):
        both[0].to_table(nearest={"column": "v", "q": np.zeros((1, 1, 3))})
    with pytest.raises(TypeError, match="complex"):
        both[0].to_table(nearest={"column": "v", "q": np.ones(3, np.complex64)})


def test_messages(both: tuple[Any, Any]) -> None:
    for parameters, words in (
        ({"colum": "v"}, "did you mean 'column'"),
        ({"metric": "cosin"}, "did you mean 'cosine'"),
        ({"column": "vv"}, "did you mean 'v'"),
        ({"q": [1, 2]}, "size 2 does not match the size 3"),
        ({"column": "i32"}, "int32"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            both[0].scanner(nearest={"column": "v", "q": QUERY, **parameters})


def test_default_scan_options(both: tuple[Any, Any]) -> None:
    nearest = {"column": "v", "q": QUERY, "k": 2}
    dataset = lance_dataset.dataset(both[0].uri, default_scan_options={"nearest": nearest, "columns": ["id"]})
    assert dataset.schema.names == ["id", "_distance"]
    assert dataset.to_table().num_rows == 2


def test_searches_of_damaged_tables(both: tuple[Any, Any], tmp_path: Path) -> None:
    table = both[0].to_table(columns=["v"])
    dataset = lance_dataset.write_dataset(table, tmp_path / "t")
    (file,) = (tmp_path / "t" / "data").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(lance_dataset.LanceError):
        lance_dataset.dataset(dataset.uri).to_table(nearest={"column": "v", "q": QUERY})
