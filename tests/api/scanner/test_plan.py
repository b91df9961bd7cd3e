"""Tests of scan plans, and of reports of a run: statistics and progress."""

from __future__ import annotations

import builtins
import logging
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.dataset import ScanStatistics, serialize_row_addrs
from lance_dataset.scan.explain.plan import scan_plan
from lance_dataset.scan.explain.plan_nodes import FilterPlan, LatePlan, ProjectPlan, ScanPlan

ROWS = 3000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of three fragments of 1,000 rows, ten deleted from the first."""
    path = tmp_path_factory.mktemp("plans") / "data.lance"
    table = pa.table(
        {
            "id": range(ROWS),
            "n": [row % 7 for row in range(ROWS)],
            "s": [f"text {row}" for row in range(ROWS)],
            "st": [{"x": row, "y": "y" * (row % 9)} for row in range(ROWS)],
        }
    )
    lance_dataset.write_dataset(table, path, max_rows_per_file=1000).delete("id < 10")
    return path


@pytest.fixture
def ds(path: Path) -> lance_dataset.LanceDataset:
    return lance_dataset.dataset(path)


def steps(plan: str) -> list[str]:
    """Return the names of the steps of a plan, outermost first.

    Check that the plan has one line per step, each indented further, and a line of totals.
    """
    lines = [line for line in plan.splitlines() if not line.startswith("Total: ")]
    for depth, line in enumerate(lines):
        assert line.startswith("" if depth == 0 else "   " * (depth - 1) + "└─ "), plan
    return [re.match(r"[ └─]*(\w+)", line).group(1) for line in lines]


PLANS: list[tuple[dict[str, Any], str]] = [
    ({}, "ProjectionExec LanceRead"),
    ({"columns": []}, "ProjectionExec LanceRead"),
    ({"columns": ["id"], "limit": 3}, "GlobalLimitExec ProjectionExec LanceRead"),
    ({"columns": ["id"], "offset": 3}, "GlobalLimitExec ProjectionExec LanceRead"),
    ({"columns": ["id"], "filter": "id > 3"}, "ProjectionExec FilterExec LanceRead"),
    ({"columns": ["s"], "filter": "id > 3"}, "ProjectionExec LanceRead FilterExec LanceRead"),
    (
        {"columns": ["s"], "filter": "id > 3", "late_materialization": False},
        "ProjectionExec FilterExec LanceRead",
    ),
    (
        {"columns": ["id"], "order_by": ["id"], "limit": 3},
        "GlobalLimitExec ProjectionExec SortExec LanceRead",
    ),
    ({"columns": ["id"], "order_by": ["id"]}, "ProjectionExec SortExec LanceRead"),
    ({"columns": {"a": "id + 1"}, "filter": "n > 3"}, "ProjectionExec LanceRead FilterExec LanceRead"),
]


@pytest.mark.parametrize(("options", "expected"), PLANS, ids=[str(options) for options, _ in PLANS])
def test_steps(ds: lance_dataset.LanceDataset, options: dict[str, Any], expected: str) -> None:
    scanner = ds.scanner(**options)
    is_late = expected.count("LanceRead") == 2
    lines = [line for line in scanner.explain_plan().splitlines() if is_late or "source=stream" not in line]
    assert [re.match(r"[ └─]*(\w+)", line).group(1) for line in lines] == expected.split()
    assert steps(scanner.analyze_plan()) == steps(scanner.explain_plan())
    for line in scanner.explain_plan().splitlines():
        assert line in scanner.explain_plan(verbose=True).splitlines()


def test_what_a_plan_says(ds: lance_dataset.LanceDataset) -> None:
    plan = ds.scanner(
        columns={"up": "upper(s)", "x": "st.x"}, filter="n > 3 AND id IN (4, 2000)", fragments=ds.get_fragments()[1:]
    ).explain_plan(verbose=True)
    assert "up: string = upper(s)" in plan
    assert "fragments=2 of 3" in plan
    assert "1 fragments left out by the caller" in plan
    assert "rows=2,000 of 3,000" in plan
    assert "version=2" in plan
    assert "rows 0..1000 of 1,000" in plan
    assert "fragment 0" not in plan
    assert ".lance (2.2)" in plan


def test_rows_that_are_not_looked_at(ds: lance_dataset.LanceDataset) -> None:
    assert "rows=2 of 3,000" in ds.scanner(filter="_rowid IN (20, 30)").explain_plan()
    assert "rows named by the filter" in ds.scanner(filter="_rowid IN (20, 30)").explain_plan()
    allowed = serialize_row_addrs([20, 30, (1 << 32) + 3])
    plan = ds.scanner(row_addr_allowlist=allowed).explain_plan()
    assert "fragments=2 of 3, rows=3 of 3,000" in plan
    assert "rows chosen by their addresses" in plan


def test_statistics_that_exclude_rows(tmp_path: Path) -> None:
    table = pa.table({"id": range(ROWS)})
    lance.write_dataset(table, tmp_path, data_storage_version="legacy", max_rows_per_file=1000, max_rows_per_group=100)
    ds = lance_dataset.dataset(tmp_path)
    plan = ds.scanner(filter=pc.field("id") == 1234).explain_plan()
    assert "fragments=1 of 3" in plan
    assert "statistics exclude" in plan
    assert "statistics exclude" not in ds.scanner(filter="id = 1234", use_stats=False).explain_plan()


def test_plans_of_many_fragments_are_quick(tmp_path: Path) -> None:
    """A plan opens the files of the first fragments only, unless it is verbose."""
    table = pa.table({"id": range(400)})
    lance.write_dataset(table, tmp_path, data_storage_version="legacy", max_rows_per_file=10)
    scanner = lance_dataset.dataset(tmp_path).scanner(filter="id = 3")
    assert "fragments=25 of 40" in scanner.explain_plan()
    assert "first 16 fragments (verbose=True looks at all" in scanner.explain_plan()
    assert "fragments=1 of 40" in scanner.explain_plan(verbose=True)
    assert "fragments=1 of 40" in scanner.analyze_plan()


def test_a_plan_is_a_tree_of_values(ds: lance_dataset.LanceDataset) -> None:
    scanner = ds.scanner(columns=["s"], filter="n > 3")
    root = scan_plan(scanner._reader, scanner._request)
    kinds, node = [], root
    while node is not None:
        kinds.append(type(node))
        node = node.child
    assert kinds == [ProjectPlan, LatePlan, FilterPlan, ScanPlan]
    assert root == scan_plan(scanner._reader, scanner._request)


def test_analysis_counts(ds: lance_dataset.LanceDataset) -> None:
    scanner = ds.scanner(columns=["s"], filter="n > 3")
    kept = scanner.to_table()
    plan = scanner.analyze_plan().splitlines()
    found = next(line for line in plan if "FilterExec" in line)
    looked = next(line for line in plan if "num_fragments=" in line)
    assert f"metrics=[output_rows={kept.num_rows}," in found
    assert f"metrics=[output_rows={ROWS}," in looked
    assert "elapsed_compute=" in looked
    assert plan[-1].startswith(f"Total: {kept.num_rows:,} rows in ")
    assert "requests" in plan[-1]


def test_analysis_of_what_is_read_at_once(ds: lance_dataset.LanceDataset) -> None:
    """Without a filter the scan step reads the columns, and its size is that of the result."""
    table = ds.to_table(columns=["id", "n"])
    scan = ds.scanner(columns=["id", "n"]).analyze_plan().splitlines()[1]
    assert "LanceRead: " in scan
    assert f"output_bytes={table.nbytes / 1024:.1f} KiB" in scan
    assert "elapsed_compute=" in scan


def test_analysis_of_a_sort(ds: lance_dataset.LanceDataset) -> None:
    """A sorted scan reads the sort keys to find the rows, and then the other columns of these rows."""
    plan = ds.scanner(columns=["s"], order_by=["n"], filter="id > 20", limit=5).analyze_plan().splitlines()
    assert [line.split(":")[0].strip(" └─") for line in plan[1:-1]] == [
        *("ProjectionExec", "LanceRead", "SortExec", "FilterExec", "LanceRead"),
    ]
    assert "LanceRead: projection=[s], source=stream(_rowid)" in plan[2]
    assert "output_rows=5" in plan[2]
    assert "TopK(fetch=5)" in plan[3]
    assert "projection=[id, n]" in plan[5]
    assert "output_bytes=" in plan[5].partition("metrics=[")[2]


def test_a_second_analysis_says_why_nothing_is_read(tmp_path: Path) -> None:
    """A second analysis explains why nothing is read: pages of lists are kept open.

    Small pages of plain values would be read again.
    """
    table = pa.table({"items": [[n, n + 1] for n in range(1000)]})
    scanner = lance_dataset.write_dataset(table, tmp_path / "t").scanner()
    assert "not counted again" not in scanner.analyze_plan()
    assert "read 0 B in 0 requests (data that this dataset mapped or loaded before" in scanner.analyze_plan()


def test_verbose_is_a_switch(ds: lance_dataset.LanceDataset) -> None:
    with pytest.raises(TypeError, match="verbose must be True or False"):
        ds.scanner().explain_plan("yes")  # type: ignore[arg-type]


def test_analysis_of_counting(ds: lance_dataset.LanceDataset) -> None:
    """`count_rows=True` analyzes `count_rows()`, as in the reference."""
    plan = ds.scanner(columns=["s"], filter="n > 3").analyze_plan(count_rows=True)
    assert steps(plan) == ["AggregateExec", "FilterExec", "LanceRead"]
    assert f"Total: {ds.count_rows('n > 3'):,} rows counted" in plan
    assert "the manifest knows" in ds.scanner().analyze_plan(True)
    assert "Total: 2 rows counted" in ds.scanner(filter="n > 3", limit=2).analyze_plan(True)
    with pytest.raises(TypeError, match="True or False"):
        ds.scanner().analyze_plan(count_rows=1)


def test_nothing_to_scan(tmp_path: Path) -> None:
    ds = lance_dataset.write_dataset(pa.table({"id": pa.array([], pa.int64())}), tmp_path)
    assert steps(ds.scanner(filter="id > 3").explain_plan()) == ["ProjectionExec", "FilterExec", "LanceRead"]
    assert "Total: 0 rows" in ds.scanner(filter="id > 3", order_by=["id"]).analyze_plan()
    assert ds.scanner(filter="id > 3").to_table(progress=lambda done, total: None).num_rows == 0


# -- statistics --------------------------------------------------------------------------------------------------

RUNS = {
    "to_table": lambda scanner: scanner.to_table(),
    "to_batches": lambda scanner: list(scanner.to_batches()),
    "to_reader": lambda scanner: scanner.to_reader().read_all(),
    "to_pandas": lambda scanner: scanner.to_pandas(),
    "head": lambda scanner: scanner.head(2),
    "count_rows": lambda scanner: scanner.count_rows(),
    "not to the end": lambda scanner: next(scanner.to_batches()),
    "explain_plan": lambda scanner: scanner.explain_plan(),
}


@pytest.mark.parametrize("name", RUNS)
def test_callbacks_come_as_in_the_reference(path: Path, name: str) -> None:
    def calls(library: Any) -> list[Any]:
        told: list[Any] = []
        scanner = library.dataset(path).scanner(
            columns=["id"], filter="n > 3", batch_size=100, scan_stats_callback=told.append
        )
        RUNS[name](scanner)
        RUNS[name](scanner)
        return told

    assert len(calls(lance_dataset)) == len(calls(lance))


def test_statistics(path: Path) -> None:
    told: list[ScanStatistics] = []
    lance_dataset.dataset(path).scanner(columns=["n"], filter="n > 3", scan_stats_callback=told.append).to_table()
    theirs: list[Any] = []
    lance.dataset(path).scanner(columns=["n"], filter="n > 3", scan_stats_callback=theirs.append).to_table()
    assert set(dir(theirs[0])) - set(dir(told[0])) == set()
    assert told[0].all_counts["fragments_scanned"] == theirs[0].all_counts["fragments_scanned"]
    assert told[0].all_counts["rows_scanned"] == ROWS
    assert told[0].iops > 0
    assert told[0].bytes_read > 0
    assert sum(told[0].all_times.values()) > 0


def test_bytes_read_follow_the_columns(path: Path) -> None:
    def read(**options: Any) -> int:
        told: list[ScanStatistics] = []
        lance_dataset.dataset(path).scanner(**options, scan_stats_callback=told.append).to_table()
        return told[0].bytes_read

    everything = read()
    assert read(columns=["n"]) < everything / 3
    assert read(columns=["n"], fragments=lance_dataset.dataset(path).get_fragments()[:1]) < everything / 6


def test_a_callback_that_fails(ds: lance_dataset.LanceDataset, caplog: pytest.LogCaptureFixture) -> None:
    """A statistics callback that fails does not fail the scan; its error is logged."""

    def fail(statistics: ScanStatistics) -> None:
        raise RuntimeError("boom")

    with caplog.at_level(logging.ERROR, "lance_dataset"):
        assert ds.scanner(columns=["id"], scan_stats_callback=fail).to_table().num_rows == ds.count_rows()
    assert "boom" in caplog.text


# -- progress ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"filter": "n > 100"}, {"filter": "n > 3", "limit": 5}, {"limit": 7}, {"columns": []}, {"order_by": ["n"]}],
    ids=str,
)
def test_progress(ds: lance_dataset.LanceDataset, options: dict[str, Any]) -> None:
    """Reported progress only grows, ends at the total, and does not change the result."""
    told: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        told.append((done, total))

    assert ds.to_table(**options, progress=report) == ds.to_table(**options)
    batches = ds.to_batches(batch_size=100, **options, progress=report)
    assert sum(batch.num_rows for batch in batches) == ds.scanner(**options).count_rows()
    ends = [done for done, total in told if done == total]
    assert len(ends) == 2
    for (before, total), (after, same) in pairwise(told):
        assert total == same
        assert before < after or before == total


def test_progress_of_other_ways(ds: lance_dataset.LanceDataset) -> None:
    told: list[int] = []
    ds.to_pandas(columns=["id"], progress=lambda done, total: told.append(done))
    ds.scanner(columns=["id"]).to_reader(progress=lambda done, total: told.append(done)).read_all()
    next(iter(ds.get_fragments())).to_table(columns=["id"], progress=lambda done, total: told.append(done))
    assert told.count(ds.count_rows()) == 2
    assert told[-1] == 990
    assert ds.scanner(filter="n > 3").count_rows(progress=lambda done, total: told.append(done)) < ROWS
    assert told[-1] == ds.count_rows()


def test_progress_of_counting(ds: lance_dataset.LanceDataset) -> None:
    told: list[tuple[int, int]] = []
    for counted in (ds, ds.get_fragment(0)):
        kept = counted.count_rows("n > 3", progress=lambda done, total: told.append((done, total)))
        assert kept == counted.to_table(filter="n > 3").num_rows
        assert told.pop() == (counted.count_rows(), counted.count_rows())


def test_a_progress_bar(ds: lance_dataset.LanceDataset, capsys: pytest.CaptureFixture[str]) -> None:
    assert ds.to_table(filter="n > 3", progress=True).num_rows == ds.count_rows("n > 3")
    assert "100%" in capsys.readouterr().err
    with pytest.raises(TypeError, match="progress"):
        ds.to_table(progress="yes")


def test_a_progress_bar_without_its_library(ds: lance_dataset.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("tqdm"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(lance_dataset.errors.UnsupportedError, match="pip install tqdm"):
        ds.to_table(progress=True)
