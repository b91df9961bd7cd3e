"""Test of the Python blocks of docs/spark.md and of the tutorial: they run in order and give the stated values."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import lance_dataset.spark
from lance_dataset.spark import options

DOCS = Path(__file__).parents[2] / "docs"
PAGE, TUTORIAL = DOCS / "spark.md", DOCS / "tutorials" / "spark.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"#\s*->\s*(.*)$")
_PLACE = re.compile(r"""(?<=["'])(\w+\.lance|checkpoint(?:-2)?|backfill|incoming)(?=["'/])""")


def run_examples(path, spark, folder):
    names = {"spark": spark}
    page = path.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(page):
        first = page.count("\n", 0, match.start()) + 2
        text = _PLACE.sub(lambda found: f"{folder}/{found.group()}", match.group(1))
        lines = text.splitlines()
        for statement in ast.parse(text).body:
            shown = _SHOWN.search(lines[statement.end_lineno - 1])
            where = f"{path.name}:{first + statement.lineno - 1}"
            code = ast.unparse(statement)
            if shown is None:
                exec(compile(code, where, "exec"), names)
            else:
                assert repr(eval(compile(code, where, "eval"), names)) == shown.group(1), where


def test_the_examples_run(spark, tmp_path):
    run_examples(PAGE, spark, tmp_path)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    for view in ("numbers", "target"):
        spark.catalog.dropTempView(view)


def test_the_tutorial_runs(spark, tmp_path):
    run_examples(TUTORIAL, spark, tmp_path)


def test_the_page_names_everything():
    page = PAGE.read_text(encoding="utf-8")
    for name in (*options._READ_NAMES, *options._STREAM_NAMES, *options._WRITE_NAMES):
        assert f"`{name}`" in page or name == "path", name
    examples = "".join(match.group(1) for match in _BLOCK.finditer(page))
    for name in lance_dataset.spark.__all__:
        assert f"{name}(" in examples or name in ("LanceDataSource", "LanceTable"), name
