"""Tasks of newcomers print what they should, with the command line and with Python."""

from __future__ import annotations

import contextlib
import io
import os
import traceback
from pathlib import Path

import pytest
from click.testing import CliRunner
from first_contact.tasks import Task, problems, read_tasks
from typer.main import get_command

from lance_dataset.cli.app import app

TASKS = read_tasks(Path(__file__).parent / "tasks.txt")


def run(task: Task) -> tuple[int, str]:
    """Return the exit status and the output of a task."""
    if task.command:
        answer = CliRunner().invoke(get_command(app), task.command)
        return answer.exit_code, answer.output
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(task.code, task.title, "exec"), {"__name__": "__main__"})
    except Exception:
        return 1, out.getvalue() + traceback.format_exc()
    return 0, out.getvalue()


@pytest.mark.filterwarnings("ignore")
def test_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them run in one folder, in order; `make first-contact` does the same in a new environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "COLUMNS", "80")
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    answers = [(task, *run(task)) for task in TASKS]
    found = [
        "\n".join((f"# {task.title}", *wrong, output))
        for task, status, output in answers
        if (wrong := problems(task, status, output))
    ]
    assert not found, "\n\n".join(found)


def test_there_are_enough_tasks() -> None:
    assert len(TASKS) >= 60
