"""Do the tasks of newcomers with the package of an environment, and print each with its output.

    python tests/first_contact PYTHON

PYTHON is the interpreter of an environment into which the package was installed with ``pip install ".[cli]"``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tasks import Task, problems, read_tasks


def run(task: Task, python: str, folder: str) -> tuple[int, str, float]:
    """Return the exit status, the output, and the seconds of a task in an environment."""
    command = [str(Path(python).parent / "lance-dataset"), *task.command] if task.command else [python, "-c", task.code]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    started = time.perf_counter()
    answer = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return answer.returncode, answer.stdout, time.perf_counter() - started


def main() -> int:
    """Do all tasks; return how many were not as expected."""
    python, failed = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        for task in read_tasks(Path(__file__).parent / "tasks.txt"):
            status, output, seconds = run(task, python, folder)
            found = problems(task, status, output)
            failed += bool(found)
            print(f"\n# {task.title}   [{seconds:.1f} s]")
            print("$ lance-dataset " + " ".join(task.command) if task.command else task.code)
            print(output.rstrip())
            for each in found:
                print(f"!! {each}")
    print(f"\n{failed} of the tasks are not as expected")
    return failed


if __name__ == "__main__":
    sys.exit(main() != 0)
