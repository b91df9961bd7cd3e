"""Names in plans that programs look for, compared with those of the reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.query
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
import lance_dataset.query

ROWS = 20_000
TABLE = pa.table(
    {
        "a": range(ROWS),
        "s": ["x y"] * ROWS,
        "v": pa.FixedSizeListArray.from_arrays(
            pa.array(np.random.default_rng(0).random(4 * ROWS).astype(np.float32)), 4
        ),
    }
)
NEAR = {"column": "v", "q": [1.0] * 4, "k": 3}
MERGE_COUNTS = ("bytes_written", "num_files_written", "num_inserted_rows", "num_updated_rows", "num_deleted_rows")


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, Any]]:
    """Return both packages, each with a dataset on the same files."""
    path = tmp_path_factory.mktemp("plans") / "t"
    made = lance_dataset.write_dataset(TABLE, path, max_rows_per_file=ROWS // 2)
    made.create_scalar_index("a", "BTREE")
    made.create_scalar_index("s", "INVERTED", with_position=True)
    made.create_index("v", "IVF_PQ", num_partitions=4, num_sub_vectors=2)
    return [(lance, lance.dataset(path)), (lance_dataset, lance_dataset.dataset(path))]


SCANS: dict[str, tuple[Callable[[Any], dict[str, Any]], list[str]]] = {
    "all": (lambda m: {}, ["LanceRead: ", "projection=[a, s, v]", "num_fragments=2"]),
    "one column": (lambda m: {"columns": ["a"]}, ["LanceRead: ", "projection=[a]"]),
    "computed": (lambda m: {"columns": {"b": "a + 1"}}, ["ProjectionExec: expr=[", "projection=[a]"]),
    "limit": (
        lambda m: {"columns": ["a"], "filter": "length(s) > 2", "limit": 3, "offset": 1},
        ["GlobalLimitExec: skip=1, fetch=3", "ProjectionExec: "],
    ),
    "top": (
        lambda m: {"columns": ["s"], "order_by": ["a"], "limit": 4, "with_row_id": True},
        ["SortExec: TopK(fetch=4), expr=[a", " ASC NULLS LAST", "ProjectionExec: expr=[s"],
    ),
    "sort": (
        lambda m: {"columns": ["a"], "order_by": ["a"], "with_row_id": True},
        ["SortExec: expr=[a", " ASC NULLS LAST"],
    ),
    "index": (lambda m: {"columns": ["s"], "filter": "a = 7"}, ["ScalarIndexQuery: query=[a = 7]@a_idx(BTree)"]),
    "nearest": (
        lambda m: {"nearest": {**NEAR, "use_index": False}, "columns": ["a"]},
        ["KNNVectorDistance: metric=l2", "projection=[v]", "projection=[a], source=stream(_rowid)"],
    ),
    "vector index": (
        lambda m: {"nearest": NEAR, "columns": ["a"]},
        ["ANNSubIndex: name=v_idx, k=3, deltas=1, metric=L2", "ProjectionExec: expr=[a"],
    ),
    "filtered search": (
        lambda m: {"nearest": NEAR, "columns": ["a"], "filter": "a > 5"},
        ["ANNSubIndex: ", "FilterExec: a"],
    ),
    "words": (
        lambda m: {"columns": ["a"], "full_text_query": m.query.MatchQuery("x", "s"), "limit": 5},
        ["MatchQuery: column=s, query=[x]", "GlobalLimitExec: skip=0, fetch=5"],
    ),
    "phrase": (
        lambda m: {"columns": ["a"], "full_text_query": m.query.PhraseQuery("x y", "s")},
        ["PhraseQuery: column=s, query=x y"],
    ),
    "several": (
        lambda m: {
            "columns": ["a"],
            "full_text_query": m.query.BooleanQuery([(m.query.Occur.MUST, m.query.MatchQuery("x", "s"))]),
        },
        ["CompoundFtsScorer: query=Boolean"],
    ),
}


@pytest.mark.parametrize("name", SCANS)
def test_plans_of_scans(datasets: list[tuple[Any, Any]], name: str) -> None:
    options, texts = SCANS[name]
    for module, dataset in datasets:
        scanner = dataset.scanner(**options(module))
        for _ in range(4):  # an index is opened only when it could have saved the time
            scanner.to_table()
        for plan in (scanner.explain_plan(), scanner.explain_plan(verbose=True)):
            for text in texts:
                assert text in plan, module.__name__


def test_metrics_of_scans(datasets: list[tuple[Any, Any]]) -> None:
    counts = []
    for _, dataset in datasets:
        plan = dataset.scanner(columns=["a"], filter="length(s) + a < 500").analyze_plan()
        lines = [re.search(r"(\w+): .*metrics=\[output_rows=(\d+)", line) for line in plan.splitlines()]
        found = {line[1]: int(line[2]) for line in lines if line is not None and line[1] != "LanceRead"}
        assert "elapsed_compute=" in plan
        assert "output_batches=" in plan
        counts.append(set(found.values()))
    assert counts == [{497}, {497}]


@pytest.mark.parametrize("clauses", ["update", "insert", "delete"])
def test_plans_of_merges(tmp_path: Path, clauses: str) -> None:
    found = []
    for module in (lance, lance_dataset):
        dataset = module.write_dataset(TABLE.slice(0, 20), tmp_path / module.__name__)
        merge = dataset.merge_insert("a")
        if clauses != "insert":
            merge.when_matched_update_all()
        if clauses != "delete":
            merge.when_not_matched_insert_all()
        else:
            merge.when_not_matched_by_source_delete("a > 10")
        assert "HashJoinExec: " in merge.explain_plan()
        assert "projection=[a]" in merge.explain_plan()
        plan = merge.analyze_plan(TABLE.slice(10, 20))
        (line,) = (line for line in plan.splitlines() if "MergeInsert: " in line)
        counts = dict(re.findall(r"(\w+)=([\d.]+)", line.partition("metrics=[")[2]))
        assert float(counts.pop("bytes_written")) > 0
        found.append({name: int(counts[name]) for name in MERGE_COUNTS[1:]})
        assert dataset.version == 1
    assert found[0] == found[1]
