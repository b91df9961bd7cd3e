"""Python scripts that run in separate processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run_script(script: str, *arguments: str, **options: str) -> subprocess.Popen[str]:
    pairs = [f"{key}={value}" for key, value in options.items()]
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments, *pairs]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
