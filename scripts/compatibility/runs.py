"""Runs of one release at one file version: every type, in both directions."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from compatibility.kinds import BATCH_ROWS, CASES, FAMILIES, FILE_ROWS, Case, rows
from compatibility.releases import RELEASES, Release
from compatibility.trial import FILTERED, STEP, Outcome, Reading, judge_ours, judge_theirs, read_back, true_reading
from compatibility.workers import Worker

__all__ = ["reads_ours", "run"]


def run(release: Release, version: str, python: Path, folder: Path) -> dict[str, Any]:
    """Return the outcomes of a release at a file version by type and case, with the versions that were used.

    Parameters
    ----------
    folder
        Folder for the datasets, which are removed afterwards.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    us = Path(sys.executable)
    with Worker(python, "lance") as theirs, Worker(us, "lance_dataset") as ours, Worker(us, "lance") as newest:
        abouts = [worker.do(do="about") for worker in (theirs, newest, ours)]
        if [about.get("release") for about in abouts[:2]] != [release.name, RELEASES[-1].name] or "error" in abouts[2]:
            raise SystemExit(f"wanted pylance {release.name}, {RELEASES[-1].name} and this package, found {abouts}")
        pair = _Pair(release, version, theirs, ours, newest, folder)
        outcomes = {name: {case.name: pair.trial(name, kind, case) for case in CASES} for name, kind in _kinds()}
    shutil.rmtree(folder)
    return {"release": abouts[0], "here": abouts[2], "outcomes": outcomes}


def _kinds() -> Iterator[tuple[str, pa.DataType]]:
    for kinds in FAMILIES.values():
        yield from kinds.items()


def reads_ours(release: Release, version: str) -> bool:
    """Return True if the release is expected to read files that this package writes at a file version."""
    return version not in release.unstable or release == RELEASES[-1]


class _Pair:
    """A release and this package at one file version."""

    def __init__(
        self, release: Release, version: str, theirs: Worker, ours: Worker, newest: Worker, folder: Path
    ) -> None:
        self._release = release
        self._version = version
        self._theirs = theirs
        self._ours = ours
        self._newest = newest
        self._folder = folder

    def trial(self, name: str, kind: pa.DataType, case: Case) -> dict[str, Any]:
        """Return the outcomes of what the release writes (`theirs`) and of what this package writes (`ours`)."""
        table = rows(name, kind, case)
        source = self._folder / "source"
        # Compressed buffers are decompressed into new memory, which is aligned as every release requires.
        with pa.ipc.new_stream(source, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as sink:
            sink.write_table(table)
        own = judge_theirs(*self._readings(self._theirs, table, case))
        outcomes = {"theirs": asdict(own)}
        if reads_ours(self._release, self._version):
            outcome = judge_ours(*self._readings(self._ours, table, case), own)
            if outcome.mark in ("refused", "differs") and self._fails_with_newest(table, case):
                outcome = Outcome("unknown", outcome.reason)
            outcomes["ours"] = asdict(outcome)
        return outcomes

    def _fails_with_newest(self, table: pa.Table, case: Case) -> bool:
        """Return True if the release also fails to read the same rows as written by the newest release."""
        refusal, theirs, ours, truth = self._readings(self._newest, table, case)
        return not refusal and all(theirs.problem(other) for other in (truth, ours) if not other.errors)

    def _readings(self, writer: Worker, table: pa.Table, case: Case) -> tuple[str, Reading, Reading, Reading]:
        """Return the reason why a side did not write the rows (or ""), both readings, and the expected reading."""
        path = self._folder / "dataset"
        shutil.rmtree(path, ignore_errors=True)
        deleted = case.deleted if self._release.has_delete else (0, 0)
        refusal = self._write(writer, path, deleted)
        if refusal:
            return refusal, Reading(), Reading(), Reading()
        theirs, ours = (self._read(side, path) for side in (self._theirs, self._ours))
        return "", theirs, ours, true_reading(table, deleted)

    def _write(self, writer: Worker, path: Path, deleted: tuple[int, int]) -> str:
        options = {"group": BATCH_ROWS, "file": FILE_ROWS, "new_names": self._release.has_new_manifest_names}
        result = writer.do(
            do="write", path=str(path), source=str(self._folder / "source"), version=self._version, **options
        )
        if "error" not in result and deleted[1]:
            result = writer.do(do="delete", path=str(path), predicate=f"id >= {deleted[0]} and id < {deleted[1]}")
        return str(result.get("error", ""))

    def _read(self, reader: Worker, path: Path) -> Reading:
        out = self._folder / "read"
        predicate = f"id >= {FILTERED[0]} and id < {FILTERED[1]}"
        return read_back(reader.do(do="read", path=str(path), out=str(out), step=STEP, predicate=predicate), out)
