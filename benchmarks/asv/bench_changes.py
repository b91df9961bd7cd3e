"""Changes of a table, each on a new copy of its files."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import changes
import lance_dataset as lance
from changes import Change

ROWS = 200_000
FRAGMENTS = 50
#: The source and the tables are created once for all benchmarks.
CHANGES: dict[str, Change] = {change.name: change for change in changes.changes(ROWS)}


class Changes:
    params = (tuple(CHANGES),)
    param_names = ("change",)
    timeout = 300
    number = 1  # each change runs once on a copy
    rounds, repeat = 1, 5

    def setup_cache(self) -> str:
        folder = Path.cwd()  # a separate folder, removed after the run
        per_fragment = ROWS // FRAGMENTS
        lance.write_dataset(changes.stream(ROWS), folder / "rows")
        lance.write_dataset(changes.stream(ROWS), folder / "fragments", max_rows_per_file=per_fragment)
        return str(folder)

    def setup(self, tables: str, name: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="lance-dataset-bench-"))
        shutil.copytree(Path(tables) / CHANGES[name].table, self.directory / "copy")
        self.dataset = lance.dataset(self.directory / "copy")

    def teardown(self, _tables: str, _name: str) -> None:
        shutil.rmtree(self.directory)

    def time_change(self, _tables: str, name: str) -> None:
        CHANGES[name].run(self.dataset)
