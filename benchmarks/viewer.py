"""Seconds until the viewer shows the first rows: the table's description and the first window, each in a new server.

python benchmarks/viewer.py --rounds 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_dataset as lance
from lance_dataset.viewer import view

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.browser import browser_program, open_browser

ROWS = 10_000_000
COLUMNS = 1_000
SHOWN = "[...document.querySelectorAll('.cell[data-row]')].some((cell) => cell.textContent)"


def datasets(folder: Path) -> dict[str, str]:
    """Write a table of many rows and one of many columns, and return their paths."""
    long = {"id": np.arange(ROWS), "x": np.random.default_rng(0).normal(size=ROWS)}
    wide = {f"c{i}": np.arange(20_000) * i for i in range(COLUMNS)}
    made = {"10M rows": long, "1,000 columns": wide}
    return {name: lance.write_dataset(pa.table(table), str(folder / name)).uri for name, table in made.items()}


def over_http(uri: str) -> float:
    """Return the seconds of opening a dataset, serving it, and answering the first two requests of the page."""
    start = time.perf_counter()
    with view(lance.dataset(uri)) as page:
        for path in ("api/table", "api/rows?start=0&count=100&columns=0,1"):
            with urllib.request.urlopen(page.url + path) as answer:
                answer.read()
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table, uri in datasets(folder).items():
            over_http(uri)
            print(f"{table}: {statistics.median(over_http(uri) for _ in range(rounds)):.3f} s over HTTP")
            if browser_program() is None:
                continue
            with open_browser(folder / f"profile of {table}") as browser:
                found = []
                for _ in range(rounds + 1):
                    with view(lance.dataset(uri)) as page:
                        start = time.perf_counter()
                        browser.open(page.url).wait(SHOWN)
                        found.append(time.perf_counter() - start)
            print(f"{table}: {statistics.median(found[1:]):.3f} s in a browser (the first page: {found[0]:.3f} s)")


if __name__ == "__main__":
    main()
