"""Test of the Python blocks of docs/spark.md: they run in order and give the stated values."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import lance_dataset.spark
from lance_dataset.spark import options

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"#\s*->\s*(.*)$")
_PLACE = re.compile(r"""(?<=["'])(\w+\.lance|checkpoint(?:-2)?|backfill)(?=["'])""")


def test_the_examples_run(spark, tmp_path):
    names = {"spark": spark}
    page = PAGE.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(page):
        first = page.count("\n", 0, match.start()) + 2
        text = _PLACE.sub(lambda found: f"{tmp_path}/{found.group()}", match.group(1))
        lines = text.splitlines()
        for statement in ast.parse(text).body:
            shown = _SHOWN.search(lines[statement.end_lineno - 1])
            where = f"docs/spark.md:{first + statement.lineno - 1}"
            code = ast.unparse(statement)
            if shown is None:
                exec(compile(code, where, "exec"), names)
            else:
                assert repr(eval(compile(code, where, "eval"), names)) == shown.group(1), where
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    for view in ("numbers", "target"):
        spark.catalog.dropTempView(view)


def test_the_page_names_everything():
    page = PAGE.read_text(encoding="utf-8")
    for name in (*options._READ_NAMES, *options._STREAM_NAMES, *options._WRITE_NAMES):
        assert f"`{name}`" in page or name == "path", name
    examples = "".join(match.group(1) for match in _BLOCK.finditer(page))
    for name in lance_dataset.spark.__all__:
        assert f"{name}(" in examples or name in ("LanceDataSource", "LanceTable"), name
