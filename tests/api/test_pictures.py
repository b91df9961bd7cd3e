"""Tests of pictures: small histograms, histories, plots of encodings, plans as SVG, and the page of a dataset."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.dataset import PlanText
from lance_dataset.errors import InvalidInputError

mpl.use("Agg")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    table = pa.table({"id": range(100), "$x$ & <y>": [f"{i}" for i in range(100)], "f": pa.array([1.5, None] * 50)})
    made = lance.write_dataset(table, tmp_path / "x.lance")
    made.insert(table.slice(0, 50))
    made.delete("id < 10")
    made.tags.create("checked", 2)
    return made


# -- small histograms --------------------------------------------------------------------------------------------------


def heights(html: str) -> list[list[float]]:
    drawn = re.findall(r"<svg.*?</svg>", html)
    return [[float(each) for each in re.findall(r"height='([\d.]+)'/>", svg)] for svg in drawn]


def test_small_histograms(tmp_path: Path) -> None:
    columns = {
        "even": pa.array([i % 20 for i in range(1000)], pa.int8()),
        "only nulls": pa.nulls(1000, pa.int32()),
        "no number": pa.array([float("nan"), float("inf")] * 500),
        "one": pa.array([7] * 1000, pa.uint64()),
        "half": pa.array(np.linspace(0, 1, 1000).astype("f2")),
        "huge": pa.array([-1.7e308, 1.7e308] * 500),
        "yes": pa.array([True, False, None, True] * 250),
        "day": pa.array(range(1000), pa.int32()).cast(pa.date32()),
        "moment": pa.array(range(1000), pa.int64()).cast(pa.timestamp("ns", "UTC")),
        "text": pa.array(["a"] * 1000),
        "back`tick": pa.array([1] * 1000),
        "a b": pa.array(range(1000)),
        "list": pa.array([[1]] * 1000),
    }
    made = lance.write_dataset(pa.table(columns), tmp_path / "x.lance")
    html = made._repr_html_()
    rows = dict(re.findall(r"<tr><td[^>]*>([^<]*)</td>(.*?)</tr>", html))
    assert {name for name, row in rows.items() if "<svg" in row} == {
        "even",
        "one",
        "half",
        "yes",
        "day",
        "moment",
        "a b",
    }
    assert heights(rows["even"]) == [[18.0] * 20]
    assert heights(rows["yes"]) == [[9.0, 18.0]]
    assert "1970-01-01 to 1972-09-26, 1,000 rows, 0 nulls" in rows["day"]
    assert "false to true" in rows["yes"]
    assert "250 nulls" in rows["yes"]


def test_histograms_read_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_MMAP", "0")  # of mapped files, a page counts as read as soon as it is opened
    table = pa.table({"id": range(2_000_000)})
    made = lance.write_dataset(table, tmp_path / "x.lance", max_rows_per_file=1_000_000)
    fresh = lance.dataset(made.uri)
    assert "<svg" in fresh._repr_html_()
    assert 0 < fresh.io_stats_snapshot().read_bytes < 500_000
    assert "1,024 rows" in fresh._repr_html_()


def test_damaged_data_is_shown_without_histograms(dataset: lance.LanceDataset) -> None:
    for file in (Path(dataset.uri) / "data").iterdir():
        file.write_bytes(b"")
    html = lance.dataset(dataset.uri)._repr_html_()
    assert "rows" in html
    assert "<svg" not in html


def test_the_newest_operations_are_named(dataset: lance.LanceDataset) -> None:
    assert "<td>3 Delete, 2 Append, 1 Overwrite</td>" in dataset._repr_html_()
    for _ in range(4):
        dataset.delete("id = 50")
    assert ", 3 Delete, ...</td>" in dataset._repr_html_()


def test_remote_stores_are_not_read(dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = lance.dataset(dataset.uri)
    before = fresh.io_stats_snapshot()
    monkeypatch.setattr(type(fresh.snapshot.store), "is_remote", True)
    assert "<svg" not in fresh._repr_html_()
    assert fresh.io_stats_snapshot() == before


# -- history -----------------------------------------------------------------------------------------------------------


def test_history(dataset: lance.LanceDataset) -> None:
    found = dataset.history()
    assert [(each.version, each.operation, each.rows, each.tags) for each in found] == [
        (1, "Overwrite", 100, ()),
        (2, "Append", 150, ("checked",)),
        (3, "Delete", 130, ()),
    ]
    assert all(each.timestamp.tzinfo is not None for each in found)
    assert repr(found) == "<VersionHistory: 3 versions, 1 to 3>"
    lines = str(found).splitlines()
    assert lines[0].split() == ["version", "time", "operation", "rows", "tags", "message"]
    assert lines[2].split()[-3:] == ["Append", "150", "checked"]
    assert found._repr_html_().count("<tr>") == 4
    assert [each.version for each in dataset.history(2)] == [2, 3]
    assert list(dataset.history(0)) == []
    assert repr(dataset.history(0)) == "<VersionHistory: no versions>"
    assert [each.version for each in found[1:]] == [2, 3]
    with pytest.raises(ValueError, match="Limit must be non-negative"):
        dataset.history(-1)


def test_history_of_a_branch_and_of_messages(dataset: lance.LanceDataset) -> None:
    branch = dataset.create_branch("trial")
    lance.write_dataset(pa.table({"id": [1]}), branch.uri, mode="overwrite", commit_message="<b>all\nnew</b>")
    entry = lance.dataset(branch.uri).history()[-1]
    assert (entry.operation, entry.rows, entry.message, entry.tags) == ("Overwrite", 1, "<b>all\nnew</b>", ())
    shown = lance.dataset(branch.uri).history()
    assert len(str(shown).splitlines()) == len(shown) + 1
    assert "<b>" not in shown._repr_html_()


def test_plot_of_a_history(dataset: lance.LanceDataset) -> None:
    axes = dataset.history().plot()
    legend = axes.get_legend()
    assert legend is not None
    assert [each.get_text() for each in legend.get_texts()] == ["Overwrite", "Append", "Delete"]
    assert [each.get_text() for each in axes.texts] == ["checked"]
    assert dataset.history(0).plot(axes) is axes
    with pytest.raises(TypeError, match=r"matplotlib\.axes\.Axes"):
        dataset.history().plot(7)  # type: ignore[arg-type]


# -- encodings ---------------------------------------------------------------------------------------------------------


def test_plot_of_encodings(dataset: lance.LanceDataset) -> None:
    report = dataset.explain_encodings()
    axes = report.plot()
    axes.figure.canvas.draw()
    names = [each.get_text() for each in axes.get_yticklabels()]
    assert sorted(names) == sorted([r"\$x\$ & <y>", "f", "id"])
    bars = [bar.get_width() for bar in axes.containers[1]]
    assert bars == sorted((column.stored_bytes for column in report.columns), reverse=True)
    assert report.column("nothing").plot() is not axes
    wide = lance.write_dataset(pa.table({f"c{i}": [i] for i in range(50)}), f"{dataset.uri}.wide")
    assert wide.explain_encodings().plot().get_title() == "The 40 largest of 50 columns"


def test_plots_without_matplotlib(dataset: lance.LanceDataset) -> None:
    script = (
        "import sys\n"
        "sys.modules['matplotlib'] = sys.modules['matplotlib.axes'] = None\n"
        "import lance_dataset as lance\n"
        f"ds = lance.dataset({dataset.uri!r})\n"
        "for each in (ds.history(), ds.explain_encodings()):\n"
        "    try:\n"
        "        each.plot()\n"
        "    except lance.errors.UnsupportedError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install 'lance-dataset[plot]'") == 2


# -- plans -------------------------------------------------------------------------------------------------------------


def boxes(svg: str) -> tuple[int, int, str]:
    """Return the numbers of boxes and arrows, and all text."""
    root = ElementTree.fromstring(svg)
    return len(root.findall(f"{SVG}rect")), len(root.findall(f"{SVG}path")), " ".join(root.itertext())


@pytest.mark.parametrize("verbose", [True, False])
def test_plans_are_drawn(dataset: lance.LanceDataset, verbose: bool) -> None:
    scanner = dataset.scanner(["id"], filter="`$x$ & <y>` != '7' and id > 3", limit=5, order_by=["id"])
    plan = scanner.explain_plan(verbose)
    number, arrows, text = boxes(plan.to_svg())
    assert number == plan.count("└─") + 1
    assert arrows == number - 1
    for word in ("LanceRead", "GlobalLimitExec", "FilterExec", "$x$ & <y>", "fetch=5"):
        assert word in text
    assert ("fragment 0" in text) == verbose
    assert plan == str(plan)
    assert pickle.loads(pickle.dumps(plan)).to_svg() == plan.to_svg()


def test_plans_of_runs_and_merges(dataset: lance.LanceDataset) -> None:
    run = dataset.scanner(["id"], filter="id > 3").analyze_plan()
    number, _, text = boxes(run.to_svg())
    assert number == run.count("└─") + 1
    assert "Total: 130 rows" in text
    merge = dataset.merge_insert("id").when_matched_update_all()
    for plan in (merge.explain_plan(), merge.analyze_plan(dataset.to_table().slice(0, 3))):
        number, _, text = boxes(plan.to_svg())
        assert number == plan.count("└─") + 1
        assert "MergeInsert" in text
        assert ("nothing was committed" in text) == ("nothing was committed" in plan)


def test_texts_of_queries_are_no_steps_of_a_plan(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"s": ["a b", "c, metrics=[x]"]}), tmp_path / "x.lance")
    made.create_scalar_index("s", "INVERTED")
    steps = len(made.scanner(full_text_query="a").explain_plan().splitlines())
    odd = "s <> '\n└─ Odd: x'"
    plan = made.scanner(full_text_query="a\nMine: b", filter=odd, prefilter=True).explain_plan()
    assert "query=[a Mine: b]" in plan
    assert len(plan.splitlines()) == boxes(plan.to_svg())[0] == steps
    run = made.scanner(filter="s = 'c, metrics=[x]'").analyze_plan()
    assert "FilterExec s = 'c, metrics=[x]' output_rows=1" in boxes(run.to_svg())[2]


@pytest.mark.parametrize("text", ["", "Scan", "Scan: a\x00b\x1b", "Total: 1", "   strange\n\n└─ x: y  [z]"])
def test_any_text_is_drawn(text: str) -> None:
    assert boxes(PlanText(text).to_svg())[0] == len(re.findall("Scan|└─|^Total", text))


def test_long_lines_are_wrapped() -> None:
    _, _, text = boxes(PlanText(f"Scan: {', '.join(f'column_{i}' for i in range(200))}").to_svg())
    assert "column_199" in text


# -- the page ----------------------------------------------------------------------------------------------------------


def test_view(dataset: lance.LanceDataset) -> None:
    with dataset.view() as page:
        assert page.url.startswith("http://127.0.0.1:")
        shown: Any = page
        assert "<iframe" in shown._repr_html_()
    with pytest.raises(InvalidInputError, match="port"):
        dataset.view(port=-1)
