"""Tasks of newcomers: a command or a few lines of Python, and what it must print.

A file of tasks is text. A line with ``#`` at its beginning is the title of a task. After it comes one command, marked
``$``, or lines of Python, marked ``>>>``. Then come lines that say what is expected of the output, which are regular
expressions: one marked ``+`` is found in it, one marked ``-`` is not. ``exit 1`` is the status expected of a command,
which is 0 otherwise. ``wide`` allows lines that are longer than those of the terminal. All tasks run in one folder,
in order.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Task", "problems", "read_tasks"]


@dataclass(frozen=True)
class Task:
    """One task."""

    title: str
    command: tuple[str, ...] = ()
    code: str = ""
    status: int = 0
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    wide: bool = False


def read_tasks(path: Path) -> list[Task]:
    """Return the tasks of a file."""
    blocks = re.split(r"^# ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [_read_task(block.splitlines()) for block in blocks]


def _read_task(lines: list[str]) -> Task:
    marked = {mark: [line[len(mark) :] for line in lines[1:] if line.startswith(mark)] for mark in _MARKS}
    known = sum(map(len, marked.values())) + sum(not line.strip() for line in lines[1:])
    if known != len(lines) - 1 or len(marked["$ "]) + bool(marked[">>> "]) != 1 or not marked["+ "]:
        raise ValueError(f"task {lines[0]!r} is not written as it should be")
    command = tuple(shlex.split(marked["$ "][0])) if marked["$ "] else ()
    if command and command[0] != "lance-dataset":
        raise ValueError(f"task {lines[0]!r}: {command[0]} is not lance-dataset")
    return Task(
        title=lines[0],
        command=command[1:],
        code="\n".join(marked[">>> "]),
        status=int(marked["exit "][0]) if marked["exit "] else 0,
        shown=tuple(marked["+ "]),
        hidden=tuple(marked["- "]),
        wide=bool(marked["wide"]),
    )


_MARKS = ("$ ", ">>> ", "+ ", "- ", "exit ", "wide")


def problems(task: Task, status: int, output: str) -> list[str]:
    """Return what is wrong with the output of a task."""
    found = [] if status == task.status else [f"exit status {status} instead of {task.status}"]
    found += [f"not printed: {text}" for text in task.shown if not re.search(text, output, re.MULTILINE)]
    found += [f"printed: {text}" for text in task.hidden if re.search(text, output, re.MULTILINE)]
    limited = task.command and not status and not task.wide
    too_long = [line for line in output.splitlines() if limited and len(line) > _WIDTH]
    return found + [f"line of {len(line)} characters: {line}" for line in too_long[:1]]


#: Columns of the terminal.
_WIDTH = 80
