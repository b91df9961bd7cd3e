"""The table of functions, which is filled when the first function is looked up."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from lance_dataset.expr.functions.registry import find_function, function_names

start = threading.Barrier(8)
found = []

def look() -> None:
    start.wait()
    found.append((find_function("abs") is not None, len(function_names())))

threads = [threading.Thread(target=look) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [(True, len(function_names()))] * 8, found
"""


def test_first_lookups_of_several_threads_find_all_functions() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
