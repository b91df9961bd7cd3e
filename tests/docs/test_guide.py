"""The Python blocks of README.md and docs/guide.md run, in order, and show what they say they show.

In a block, ``expression  # -> text`` states the repr of a value, and ``statement  # raises Name`` the class of the
error it raises. In the guide the ``lance-dataset`` commands of ``sh`` blocks run too. A block with Spark stands by
itself and gets a process of its own.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "docs/guide.md")
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
        if language == "python" or (language == "sh" and document == "docs/guide.md"):
            found.append(Block(document, text.count("\n", 0, match.start()) + 2, language, match.group(2)))
    return found


BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]


@dataclass
class Reading:
    """One reader working through a document from its top, in a folder of their own."""

    folder: Path
    blocks: list[Block]
    names: dict[str, object] = field(default_factory=dict)
    done: int = 0
    stuck: bool = False

    def run(self, block: Block) -> None:
        """Run the block, and before it all earlier ones that have not run yet."""
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
    """Blocks with Spark: its processes resolve paths against the folder in which the first of them was started."""
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
        command = [sys.executable, "-m", "lance_dataset.cli", *words[1:]]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, f"{block.document}:{block.line + number}: {result.stdout}{result.stderr}"


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reading]:
    return {
        document: Reading(tmp_path_factory.mktemp("reading"), [block for block in BLOCKS if block.document == document])
        for document in DOCUMENTS
    }


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_block(block: Block, readings: dict[str, Reading]) -> None:
    readings[block.document].run(block)


@pytest.mark.parametrize("document", [*DOCUMENTS, "CONTRIBUTING.md", "docs/architecture.md", "docs/format.md"])
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]
    missing = [target for target in targets if not ((ROOT / document).parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("name", ["LanceDataset", "LanceFragment", "ScannerBuilder"])
def test_the_guide_lists_what_is_missing(name: str) -> None:
    import lance_dataset

    module = importlib.import_module("lance.fragment" if name == "LanceFragment" else "lance.dataset")
    reference = getattr(module, name)
    missing = {found for found in dir(reference) if not found.startswith("_")} - set(dir(getattr(lance_dataset, name)))
    rows: set[str] = set()
    top = ""
    text = (ROOT / "docs/guide.md").read_text(encoding="utf-8").partition("These do not exist")[2]
    for row in re.findall(r"^\| (`\w+`.*|\.\.\. .*) \| (.*) \|$", text, re.MULTILINE):
        top = top if row[0].startswith("...") else row[0].split("`")[1]
        if top == name:
            rows.update(re.findall(r"`(\w+)`", row[1]))
    assert rows == missing


def test_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


if __name__ == "__main__":
    run_python(next(block for block in BLOCKS if block.name == ":".join(sys.argv[1:])), {})
