"""Tests of what all commands share: examples in their help, `--json`, tables that fit, exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from support.processes.cli_runs import run

import lance_dataset as lance
from lance_dataset.cli.app import app


def _commands(group: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from _commands(command, (*above, name))
        else:
            yield (*above, name)


COMMANDS = list(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_the_help_has_an_example_that_names_the_command(command: tuple[str, ...]) -> None:
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", run(*command, "--help").stdout).split())
    assert "--json" in text
    name = "query" if command == ("sql",) else " ".join(command)
    assert f"Example: lance-dataset {name} " in text


def test_there_are_the_commands() -> None:
    assert {"convert", "query", "sql", "describe", "sample", "du", "tail", "search", "diff", "view"} <= {
        command[0] for command in COMMANDS
    }


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wide") / "x.lance"
    columns = {
        f"a column with a rather long name, number {i}": ["some text that is not short " * 9] * 3 for i in range(20)
    }
    fields = {"nested": pa.array([[{"first": 1, "second": "text", "third": [1.5]}]] * 3)}
    lance.write_dataset(pa.table(columns | fields), path)
    lance.write_dataset(pa.table(columns | fields), path, mode="append")
    dataset = lance.dataset(path)
    dataset.tags.create("a-tag-with-a-rather-long-name-as-it-comes-from-a-pipeline-2024-10-11-12", 1)
    dataset.create_branch("a-branch-with-a-rather-long-name-as-it-comes-from-a-pipeline")
    return path


@pytest.mark.parametrize(
    "command",
    [
        *(
            ("info",),
            ("schema",),
            ("head",),
            ("sample",),
            ("take", 0),
            ("versions",),
            ("describe",),
            ("du",),
            ("tail",),
        ),
        *(("tags", "list"), ("branches", "list"), ("compact", "--dry-run"), ("query", "select * from dataset")),
    ],
    ids=lambda command: "-".join(map(str, command[:2])),
)
def test_tables_fit_80_columns(wide: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[object, ...]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(wide.parent)
    place = 2 if command[0] in ("tags", "branches") else 1
    lines = run(*command[:place], wide.name, *command[place:]).stdout.splitlines()
    assert lines
    assert [line for line in lines if len(line) > 80] == []
