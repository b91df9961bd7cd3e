"""Tests of the Python blocks of README.md, the guide and the tutorials: they run in order and give the stated values.

In a block, ``expression  # -> text`` states the repr of a value, and ``statement  # raises Name`` the class of the
error it raises. In the guide the ``lance-dataset`` commands of ``sh`` blocks run too. A block with Spark is
independent and runs in a separate process.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import itertools
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import lance.arrow  # it cannot be imported when another package has registered the types
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_dataset.cli.app import app

ROOT = Path(__file__).parents[2]
TUTORIALS = tuple(f"docs/tutorials/{name}.md" for name in ("start", "changes", "retrieval", "training", "migrating"))
#: Pages of the guide, whose blocks run one after another in one folder.
PAGES = tuple(
    f"docs/guide/{name}.md"
    for name in (
        "index",
        "writing",
        "reading",
        "indices",
        "search",
        "rows",
        "blobs",
        "changes",
        "versions",
        "maintenance",
        "settings",
        "writers",
        "files",
        "tools",
        "stores",
        "differences",
    )
)
DOCUMENTS = ("README.md", *PAGES, *TUTORIALS, "docs/index.md")
NOTES = ("docs/architecture.md", "docs/format.md", "docs/security.md")
_FENCE = re.compile(r"```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"#\s*->\s*(.*)$")
_RAISES = re.compile(r"#\s*raises\s+(\w+)\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its document, the line its text starts on, its language and text."""

    document: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.document}:{self.line}"


def blocks_of(document: str) -> list[Block]:
    text = (ROOT / document).read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        language = match.group(1)
        if language == "python" or (language == "sh" and document in PAGES):
            found.append(Block(document, text.count("\n", 0, match.start()) + 2, language, match.group(2)))
    return found


BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]


def reading_of(document: str) -> str:
    """Return the name of the reading that a document belongs to: all pages of the guide are one."""
    return "guide" if document in PAGES else document


@dataclass
class Reading:
    """A run of the blocks of a document, or of the guide, from its top, in a separate folder."""

    folder: Path
    blocks: list[Block]
    names: dict[str, object] = field(default_factory=dict)
    done: int = 0
    stuck: bool = False

    def run(self, block: Block) -> None:
        """Run the block, after all earlier ones that have not run yet."""
        if self.stuck:
            pytest.fail(f"an earlier block failed: {self.blocks[self.done].name}")
        self.stuck = True
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            for each in self.blocks[self.done : self.blocks.index(block) + 1]:
                if each.language == "sh":
                    run_commands(each)
                elif "pyspark" in each.text:
                    run_in_own_process(each)
                else:
                    run_python(each, self.names)
                self.done += 1
        finally:
            os.chdir(before)
        self.stuck = False


def run_python(block: Block, names: dict[str, object]) -> None:
    lines = block.text.splitlines()
    for statement in ast.parse(block.text).body:
        comment = lines[statement.end_lineno - 1][statement.end_col_offset :]
        ast.increment_lineno(statement, block.line - 1)
        where = f"{block.document}:{statement.lineno}"
        if expected := _RAISES.search(comment):
            with pytest.raises(Exception) as caught:
                _execute(statement, block, names)
            assert type(caught.value).__name__ == expected.group(1), where
        elif expected := _SHOWN.search(comment):
            assert isinstance(statement, ast.Expr), f"{where}: only expressions have a value to show"
            value = eval(compile(ast.Expression(statement.value), block.document, "eval"), names)
            assert repr(value) == expected.group(1), where
        else:
            _execute(statement, block, names)


def _execute(statement: ast.stmt, block: Block, names: dict[str, object]) -> None:
    exec(compile(ast.Module([statement], []), block.document, "exec"), names)


def run_in_own_process(block: Block) -> None:
    """Run a block with Spark in a separate process.

    Processes of Spark resolve paths against the folder in which the first of them was started.
    """
    settings = "--master local[2] --driver-memory 1g --conf spark.ui.enabled=false"
    variables = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f"{settings} --conf spark.driver.bindAddress=127.0.0.1 pyspark-shell",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, __file__, block.document, str(block.line)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=variables)
    assert result.returncode == 0, f"{block.name}: {result.stdout}{result.stderr}"


def run_commands(block: Block) -> None:
    for number, line in enumerate(block.text.splitlines()):
        words = shlex.split(line, comments=True)
        assert words[:1] == ["lance-dataset"], f"{block.document}:{block.line + number}: not a lance-dataset command"
        result = CliRunner().invoke(app, words[1:])  # a process for each command would take most of the time
        assert result.exit_code == 0, f"{block.document}:{block.line + number}: {result.output}{result.exception}"


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reading]:
    return {
        name: Reading(
            tmp_path_factory.mktemp("reading"), [block for block in BLOCKS if reading_of(block.document) == name]
        )
        for name in dict.fromkeys(map(reading_of, DOCUMENTS))
    }


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_block(block: Block, readings: dict[str, Reading]) -> None:
    readings[reading_of(block.document)].run(block)


@pytest.mark.parametrize("document", [*DOCUMENTS, "CONTRIBUTING.md", "SECURITY.md", *NOTES])
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]
    missing = [target for target in targets if not ((ROOT / document).parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("document", NOTES)
def test_paths_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./]+(?:\.(?:py|pyx|h|md|toml|proto)|/))`", text))
    assert [name for name in sorted(named) if not any(ROOT.glob(name)) and not any(ROOT.glob(f"src/**/{name}"))] == []


GUIDE = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
REFERENCE = {"LanceFragment": "lance.fragment", "DatasetOptimizer": "lance.dataset", "Session": "lance"}
OURS = {
    "DatasetOptimizer": "lance_dataset.dataset",
    "LanceStats": "lance_dataset.api.statistics",
    "Tags": "lance_dataset.api.tags",
    "Branches": "lance_dataset.api.branches",
}
CLASSES = [
    "LanceDataset", "LanceFragment", "LanceScanner", "ScannerBuilder", "LanceOperation", "Transaction",
    "DatasetOptimizer", "LanceStats", "Tags", "Branches", "Session",
]  # fmt: skip


def names_in(cell: str) -> set[str]:
    return set(re.findall(r"`([\w.]+)`", cell))


def table_rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table after some words of the guide, without its header; none without the words."""
    lines = GUIDE.partition(heading)[2].splitlines()
    if not lines:
        return []
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def said_to_be_missing(of: str) -> set[str]:
    found: set[str] = set()
    top = ""
    for first, names in table_rows("These do not exist"):
        top = top if first.startswith("...") else first.split("`")[1]
        if top == of:
            found.update(names_in(names))
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_the_guide_lists_what_classes_lack(name: str) -> None:
    reference = getattr(importlib.import_module(REFERENCE.get(name, "lance.dataset")), name)
    ours = getattr(importlib.import_module(OURS.get(name, "lance_dataset")), name)
    missing = {found for found in dir(reference) if not found.startswith("_")} - set(dir(ours))
    assert said_to_be_missing(name) == missing


@pytest.mark.parametrize(
    "name", ["lance", "lance.file", "lance.fragment", "lance.indices", "lance.optimize", "lance.schema"]
)
def test_the_guide_lists_what_modules_lack(name: str) -> None:
    reference = importlib.import_module(name)
    ours = importlib.import_module(name.replace("lance", "lance_dataset"))
    made_there = {key for key, value in vars(reference).items() if getattr(value, "__module__", "") == name}
    offered = set(reference.__all__) - {"__version__"} if name in ("lance", "lance.indices") else made_there
    missing = {found for found in offered if not found.startswith("_")} - set(dir(ours))
    assert said_to_be_missing(name) == missing


def test_the_guide_lists_missing_modules() -> None:
    import lance

    internal = {"conftest", "debug", "dependencies", "lance"}
    theirs = {module.name for module in pkgutil.iter_modules(lance.__path__) if not module.name.startswith("_")}
    missing = {name for name in theirs - internal if not importlib.util.find_spec(f"lance_dataset.{name}")}
    assert names_in(GUIDE.partition("These modules do not exist:")[2]) == missing


def test_the_guide_lists_refused_parameters(tmp_path: Path) -> None:
    import lance_dataset as lance

    def found_refused(call: Callable[..., object]) -> Iterator[str]:
        given = {"uri", "data_obj", "dataset_uri", "base_uri", "operation", "dest", "transactions", "data"}
        for name, parameter in inspect.signature(call).parameters.items():
            if name in given or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            try:
                call(**{name: object()})
            except lance.errors.UnsupportedError as error:
                if re.search(r"is not supported( by this release)?$", str(error)):
                    yield name
            except Exception:  # none of them accepts an object as the value
                continue

    uri = str(tmp_path / "x.lance")
    table = pa.table({"a": [1]})
    ds = lance.write_dataset(table, uri)
    append = lance.LanceOperation.Append([])
    calls: dict[str, Callable[..., object]] = {
        "dataset": functools.partial(lance.dataset, uri),
        "write_dataset": functools.partial(lance.write_dataset, table, str(tmp_path / "y.lance")),
        "write_fragments": functools.partial(lance.write_fragments, table, uri),
        "LanceDataset.commit": functools.partial(ds.commit, uri, append),
        "LanceDataset.commit_batch": functools.partial(ds.commit_batch, uri, [lance.Transaction(1, append)]),
        "LanceDataset.get_fragments": ds.get_fragments,
    }
    said = {names_in(call).pop(): names_in(names) for call, names in table_rows("These parameters raise")}
    refused = {name: set(found_refused(call)) for name, call in calls.items()}
    assert said == {name: parameters for name, parameters in refused.items() if parameters}


def test_the_guide_says_what_goes_together(tmp_path: Path) -> None:
    """Every pair in the guide's table of conflicts behaves as stated, on handles opened before the other commit."""
    import lance_dataset as lance

    table = pa.table({"a": [1, 2, 3, 4]})

    def low_level(make: Callable[[lance.LanceDataset], object]) -> Callable[[lance.LanceDataset], object]:
        return lambda ds: lance.LanceDataset.commit(ds, make(ds), read_version=ds.version)

    append = low_level(lambda ds: lance.LanceOperation.Append(lance.write_fragments(table, ds)))
    overwrite = low_level(lambda ds: lance.LanceOperation.Overwrite(table.schema, lance.write_fragments(table, ds)))
    restore = low_level(lambda ds: lance.LanceOperation.Restore(1))
    changes: dict[str, Callable[[lance.LanceDataset], object]] = {
        "append": append,
        "delete": lambda ds: ds.delete("a = 1", conflict_retries=0),
        "update": lambda ds: ds.update({"a": "10"}, "a = 1", conflict_retries=0),
        "add column": lambda ds: ds.add_columns(lambda batch: pa.record_batch([batch["a"]], names=["new"])),
        "compact": lambda ds: ds.optimize.compact_files(),
        "overwrite": overwrite,
        "restore": restore,
        "set key": lambda ds: ds.update_config({"key": "ours"}),
    }
    others: dict[str, Callable[[lance.LanceDataset], object]] = {
        "append": append,
        "delete other rows": lambda ds: ds.delete("a = 2"),
        "delete same rows": lambda ds: ds.delete("a < 3"),
        "update same rows": lambda ds: ds.update({"a": "20"}, "a < 3"),
        "add column": lambda ds: ds.add_columns({"other": "a"}),
        "compact": lambda ds: ds.optimize.compact_files(),
        "overwrite": overwrite,
        "restore": restore,
        "set other key": lambda ds: ds.update_config({"other": "theirs"}),
        "set same key": lambda ds: ds.update_config({"key": "theirs"}),
    }

    def outcome(change: Callable[..., object], other: Callable[..., object], uri: str) -> str:
        lance.write_dataset(table, uri, max_rows_per_file=2)
        ours, theirs = lance.dataset(uri), lance.dataset(uri)
        other(theirs)
        try:
            change(ours)
        except lance.errors.CommitConflictError as error:
            return "again" if error.retryable else "no"
        return "yes"

    head = GUIDE.partition("Compatible changes (rows")[2].partition("\n| |")[2].splitlines()[0].strip("|").split("|")
    columns = [column.strip() for column in head]
    said = {
        (row[0], column): mark
        for row in table_rows("Compatible changes (rows")
        for column, mark in zip(columns, row[1:], strict=True)
    }
    pairs = itertools.product(changes.items(), others.items())
    assert said == {
        (mine, yours): outcome(change, other, str(tmp_path / f"{number}.lance"))
        for number, ((mine, change), (yours, other)) in enumerate(pairs)
    }


def test_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


if __name__ == "__main__":
    run_python(next(block for block in BLOCKS if block.name == ":".join(sys.argv[1:])), {})
