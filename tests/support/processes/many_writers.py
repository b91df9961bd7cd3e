"""Many processes of both implementations write to one dataset; each logs its commits and their versions.

The logs in the order of the versions are the history. Replayed in memory they have to give every
version of the table. A delete names its rows by id, so its effect does not depend on rows that others append.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

# the processes run this file
sys.path.insert(0, str(Path(__file__).parents[2]))

from support.processes.together import begin_together, run_together

__all__ = ["Commit", "Outcome", "check_history", "run"]

OURS, REFERENCE = "ours", "reference"
ROWS = 10
_ATTEMPTS = 200
#: Texts of errors that ask to try again.
_LOST = ("conflict", "preempted", "Too many concurrent writers")


@dataclass(frozen=True)
class Commit:
    """Commit of a writer.

    Attributes
    ----------
    library, writer
        Library and number of the writer.
    version
        Version that it made.
    added, deleted
        Ids of rows.
    count
        Number of deleted rows that the delete reported.
    start, end
        Seconds since the start of all writers.
    attempts
        Number of calls; all but the last met conflicts.
    """

    library: str
    writer: int
    version: int
    added: tuple[int, ...]
    deleted: tuple[int, ...]
    count: int | None
    start: float
    end: float
    attempts: int


@dataclass(frozen=True)
class Outcome:
    """Result of a run.

    Attributes
    ----------
    commits
        Commits in order of their versions.
    seconds
        Seconds from the start of all writers to the end of the last.
    refused
        Errors of writers whose one call failed.
    """

    commits: list[Commit]
    seconds: float
    refused: list[str]

    def summary(self) -> str:
        """Summary of time and fairness."""
        rate = len(self.commits) / self.seconds
        lines = [f"{len(self.commits)} commits in {self.seconds:.1f} s, {rate:.0f} a second"]
        half = self.commits[: len(self.commits) // 2]
        for library in (OURS, REFERENCE):
            own = [commit for commit in self.commits if commit.library == library]
            if not own:
                continue
            waits = sorted(commit.end - commit.start for commit in own)
            lines.append(
                f"  {library:9}: {len(own)} commits, {sum(commit.library == library for commit in half)} of the first "
                f"{len(half)}; median {statistics.median(waits) * 1e3:.0f} ms, "
                f"95 % {waits[len(waits) * 95 // 100] * 1e3:.0f} ms, longest {waits[-1]:.2f} s; last at "
                f"{max(commit.end for commit in own):.1f} s; {sum(commit.attempts - 1 for commit in own)} repeated"
            )
        return "\n".join(lines)


def run(
    uri: Path | str, work: str, writers: Sequence[str], turns: int, *, seed: int = 1, fsync: bool = True
) -> Outcome:
    """Run several writers concurrently.

    Parameters
    ----------
    uri
        The dataset.
    work
        ``append``; ``mixed`` (appends, and deletes of any rows); ``disjoint`` (each deletes its own rows, in shared
        fragments); ``overlapping`` (all delete the same rows); ``create`` (one call each, in the mode ``create``);
        ``create or append``.
    writers
        ``ours`` or ``reference`` for each process.
    turns
        Number of commits of each writer.
    fsync
        True if our writers wait for the disk.
    """
    common = {"uri": str(uri), "work": work, "turns": turns, "seed": seed, "fsync": fsync}
    entries, seconds = run_together(
        __file__, [{**common, "number": number, "library": library} for number, library in enumerate(writers)]
    )
    refused = [entry["refused"] for entry in entries if "refused" in entry]
    commits = [
        Commit(**{**entry, "added": tuple(entry["added"]), "deleted": tuple(entry["deleted"])})
        for entry in entries
        if "version" in entry
    ]
    return Outcome(sorted(commits, key=lambda commit: commit.version), seconds, refused)


# -- judging -----------------------------------------------------------------------------------------------------


def check_history(
    commits: Sequence[Commit], start: Mapping[int, set[int]], rows_of: Callable[[int], list[int]]
) -> set[int]:
    """Replay the commits, and compare the results with the content of the versions.

    Parameters
    ----------
    commits
        Commits in order of their versions.
    start
        Ids in the only version that existed before.
    rows_of
        Function that returns the ids in a version.

    Returns
    -------
    set of int
        Ids in the last version.
    """
    [(version, live)] = start.items()
    live = set(live)
    assert [commit.version for commit in commits] == list(range(version + 1, version + 1 + len(commits)))
    looked_at = random.Random(len(commits)).sample(range(len(commits)), min(30, len(commits)))
    for number, commit in enumerate(commits):
        assert not live & set(commit.added)
        gone = live & set(commit.deleted)
        live = (live | set(commit.added)) - gone
        if commit.count is not None:
            assert commit.count == len(gone), commit
        if number in looked_at or number == len(commits) - 1:
            found = rows_of(commit.version)
            assert len(found) == len(set(found)), f"version {commit.version} has rows twice"
            lost, extra = live - set(found), set(found) - live
            assert not lost, f"version {commit.version} lacks {len(lost)} rows, such as {sorted(lost)[:5]}"
            assert not extra, f"version {commit.version} has {len(extra)} rows that were deleted: {sorted(extra)[:5]}"
    return live


# -- writers -----------------------------------------------------------------------------------------------------


class _Writer:
    """Writer in one process."""

    def __init__(self, given: Mapping[str, Any], begin: float, log: IO[str]) -> None:
        if given["library"] == OURS:
            import lance_dataset as library
        else:
            import lance as library
        self.library: Any = library
        self.given = given
        self.uri = given["uri"]
        self.number = given["number"]
        self.turns = given["turns"]
        self.chance = random.Random(f"{given['seed']} {self.number}")
        slow = given["fsync"] or given["library"] != OURS
        self.options: dict[str, Any] = {} if slow else {"storage_options": {"local_fsync": "false"}}
        self.begin = begin
        self.log = log

    def work(self) -> None:
        for turn in range(self.turns):
            getattr(self, "_" + self.given["work"].replace(" ", "_"))(turn)

    # kinds of work

    def _append(self, turn: int) -> None:
        added = [(self.number + 1) * 10**6 + turn * 100 + each for each in range(ROWS)]
        data = pa.table({"id": pa.array(added, pa.int64())})
        self._commit(lambda: (self._written(data, "append").version, None), added=added)

    def _mixed(self, turn: int) -> None:
        if self.chance.random() < 0.6:
            self._append(turn)
        else:
            self._delete_of(self._some_ids())

    def _disjoint(self, turn: int) -> None:
        writers, share = self.given.get("writers", 100), 3
        self._delete_of([(turn * share + each) * writers + self.number for each in range(share)])

    def _overlapping(self, turn: int) -> None:
        self._delete_of([turn * 20 + each for each in range(20) if self.chance.random() < 0.6] or [turn * 20])

    def _create(self, turn: int) -> None:
        self._once("create")

    def _create_or_append(self, turn: int) -> None:
        self._once("append")

    def _once(self, mode: str) -> None:
        added = [(self.number + 1) * 100 + each for each in range(ROWS)]
        data = pa.table({"id": pa.array(added, pa.int64())})
        start = self._now()
        try:
            version = self._written(data, mode).version
        except OSError as error:
            print(json.dumps({"refused": f"{self.given['library']}: {type(error).__name__}: {error}"}), file=self.log)
        else:
            self._note(start, 1, version, None, added, ())

    # commits

    def _some_ids(self) -> list[int]:
        ids = self._open().to_table(columns=["id"])["id"].to_pylist()
        return self.chance.sample(ids, min(len(ids), 6))

    def _delete_of(self, ids: Sequence[int]) -> None:
        def delete() -> tuple[int, int | None]:
            dataset = self._open()
            done = dataset.delete(f"id in ({', '.join(map(str, ids))})")
            return dataset.version, done["num_deleted_rows"]

        self._commit(delete, deleted=ids)

    def _commit(
        self, call: Callable[[], tuple[int, int | None]], added: Sequence[int] = (), deleted: Sequence[int] = ()
    ) -> None:
        start = self._now()
        for attempt in range(_ATTEMPTS):
            try:
                version, count = call()
            except OSError as error:
                if not any(word in str(error) for word in _LOST):
                    raise
                time.sleep(0.01 * self.chance.random() * min(attempt + 1, 20))
                continue
            self._note(start, attempt + 1, version, count, added, deleted)
            return
        raise RuntimeError(f"{self.given['library']} failed to commit {_ATTEMPTS} times")

    def _note(
        self, start: float, attempts: int, version: int, count: int | None, added: Sequence[int], deleted: Sequence[int]
    ) -> None:
        entry = {"library": self.given["library"], "writer": self.number, "version": version, "count": count}
        entry |= {"added": list(added), "deleted": list(deleted)}
        print(json.dumps({**entry, "start": start, "end": self._now(), "attempts": attempts}), file=self.log)

    def _now(self) -> float:
        return time.time() - self.begin

    def _open(self) -> Any:
        return self.library.dataset(self.uri, **self.options)

    def _written(self, data: pa.Table, mode: str) -> Any:
        return self.library.write_dataset(data, self.uri, mode=mode, **self.options)


if __name__ == "__main__":
    begin_together(lambda given, begin, log: _Writer(given, begin, log).work())
