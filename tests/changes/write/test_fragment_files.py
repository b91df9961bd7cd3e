"""Writing the data files of a table one after the other."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.changes.write.fragment_files import WriteOptions, write_fragment_files
from lance_dataset.io.base import OutputFile
from lance_dataset.io.local import LocalStore
from lance_dataset.types.schema import Schema


class SlowDisk(LocalStore):
    """A store whose files take long to close, and which knows how many are open."""

    def __init__(self, failing: int | None = None) -> None:
        super().__init__()
        self.opened = self.closed = self.most_open = 0
        self.failing = failing
        self.lock = threading.Lock()

    def open_output(self, path: str) -> OutputFile:
        self.opened += 1
        self.most_open = max(self.most_open, self.opened - self.closed)
        return _SlowFile(self, super().open_output(path))


class _SlowFile:
    def __init__(self, disk: SlowDisk, file: OutputFile) -> None:
        self._disk = disk
        self._file = file
        self.write, self.write_many, self.tell, self.abort = file.write, file.write_many, file.tell, file.abort

    def close(self) -> None:
        time.sleep(0.003)
        with self._disk.lock:  # several threads close files, and exactly one of them must fail
            if self._disk.closed == self._disk.failing:
                raise OSError("disk full")
            self._file.close()
            self._disk.closed += 1


@pytest.mark.parametrize("version", ["0.1", "2.1"])
def test_few_files_are_open_at_a_time(tmp_path: Path, version: str) -> None:
    (tmp_path / "data").mkdir()
    disk = SlowDisk()
    schema = Schema.from_arrow(pa.schema([("a", pa.int64())]))
    batches = [pa.record_batch({"a": pa.array(range(i, i + 7), pa.int64())}) for i in range(0, 70, 7)]
    options = WriteOptions(version, max_rows_per_file=2)
    fragments, _ = write_fragment_files(disk, str(tmp_path), schema, batches, options)
    assert [each.physical_rows for each in fragments] == [2] * 35
    assert disk.opened == disk.closed == len(list((tmp_path / "data").iterdir())) == 35
    assert disk.most_open <= 7


@pytest.mark.parametrize("failing", [0, 5, 34])
def test_nothing_stays_of_files_that_cannot_be_closed(tmp_path: Path, failing: int) -> None:
    (tmp_path / "data").mkdir()
    disk = SlowDisk(failing)
    schema = Schema.from_arrow(pa.schema([("a", pa.int64())]))
    batch = pa.record_batch({"a": pa.array(range(70), pa.int64())})
    with pytest.raises(OSError, match="disk full"):
        write_fragment_files(disk, str(tmp_path), schema, [batch], WriteOptions("2.1", max_rows_per_file=2))
    assert list((tmp_path / "data").iterdir()) == []


def test_in_the_order_of_the_rows(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": range(200)}), tmp_path / "t.lance", max_rows_per_file=3)
    assert made.to_table()["a"].to_pylist() == list(range(200))
