"""Many processes of both implementations make every kind of change to one dataset at once, checked against a model.

Each process logs what it did and the version that it made. Replayed in the order of the versions, the logs are the
history of the table. Changes name their rows by id, and only one process ever adds an id, so that the effect of a
change on the version before it is known.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

# the processes run this file
sys.path.insert(0, str(Path(__file__).parents[2]))

from support.processes.together import begin_together, run_together

__all__ = ["OURS", "REFERENCE", "START", "Run", "check", "create", "run"]

OURS, REFERENCE = "ours", "reference"
#: Rows of the first version: their ids, which are also their values.
START = 3000
SCHEMA = pa.schema({"id": pa.int64(), "value": pa.int64()})

_ATTEMPTS = 200
#: Texts of errors that ask to try again.
_LOST = ("conflict", "preempted", "Too many concurrent writers")
_WEIGHTS = {
    "append": 25,
    "delete": 15,
    "update": 15,
    "replace": 10,
    "upsert": 10,
    "compact": 7,
    "cleanup": 5,
    "tag": 6,
    "branch": 7,
}

Rows = dict[int, int]


@dataclass(frozen=True)
class Run:
    """Result of a run.

    Attributes
    ----------
    entries
        Everything that was done, per process in its order.
    seconds
        Seconds from the start of all writers to the end of the last.
    """

    entries: list[dict[str, Any]]
    seconds: float

    @property
    def commits(self) -> dict[int, dict[str, Any]]:
        """The changes of rows by their versions."""
        return {entry["version"]: entry for entry in self.entries if "effect" in entry}

    def summary(self) -> str:
        """Count what was done."""
        counts = Counter(f"{entry['library']} {entry['kind']}" for entry in self.entries)
        again = sum(entry.get("attempts", 1) - 1 for entry in self.entries)
        return f"{len(self.entries)} in {self.seconds:.0f} s, {again} repeated; {dict(sorted(counts.items()))}"


def create(path: str, library: Any, **options: Any) -> None:
    """Make the first version of the table."""
    ids = pa.array(range(START), pa.int64())
    library.write_dataset(pa.table([ids, ids], schema=SCHEMA), path, max_rows_per_file=START // 5, **options)


def run(path: str, writers: Sequence[str], turns: int, *, seed: int, age: dt.timedelta) -> Run:
    """Run several writers concurrently.

    Parameters
    ----------
    path
        The dataset that `create` made.
    writers
        ``ours`` or ``reference`` for each process.
    turns
        Number of changes of each writer.
    seed
        Seed of the changes.
    age
        Age of the versions that cleanups remove.
    """
    common = {"path": path, "turns": turns, "seed": seed, "age": age.total_seconds()}
    return Run(
        *run_together(
            __file__, [{**common, "number": number, "library": library} for number, library in enumerate(writers)]
        )
    )


# -- judging -----------------------------------------------------------------------------------------------------------


def check(path: str, made: Run, library: Any, other: Any, versions: int = 40) -> None:
    """Compare the table, its tags and its branches with the model.

    Parameters
    ----------
    path, made
        The dataset, and the result of the run.
    library, other
        Modules to read with: all and the newest version.
    versions
        Number of versions to compare, of those that were not cleaned up.
    """
    dataset = library.dataset(path)
    states = _states(made, dataset.version)
    left = [each["version"] for each in dataset.versions()]
    sample = {*random.Random(1).sample(left, min(versions, len(left))), dataset.version}
    for version in sorted(sample):
        assert _rows(library.dataset(path, version=version)) == states[version], f"version {version}"
    assert _rows(other.dataset(path)) == states[dataset.version]
    _check_other_versions(library, path, made, left, states)
    _check_tags(library, path, made, states)
    _check_branches(library, path, made, states)
    library.dataset(path).validate()


def _states(made: Run, newest: int) -> dict[int, Rows]:
    """Replay the changes; return the rows of all versions."""
    commits = made.commits
    assert max(commits) <= newest
    states = {1: {each: each for each in range(START)}}
    for version in range(2, newest + 1):
        rows = states[version - 1]
        if version in commits:
            entry = commits[version]
            rows = _after(rows, entry["effect"])
            expected = _count(states[version - 1], entry["effect"])
            assert entry["count"] in (None, expected), entry
        states[version] = rows
    return states


def _after(rows: Rows, effect: Mapping[str, Any]) -> Rows:
    """Return the rows after a change."""
    deleted = set(effect.get("delete", ()))
    rows = {key: value for key, value in rows.items() if key not in deleted} if deleted else dict(rows)
    for key in effect.get("add", ()):
        if key in rows:
            rows[key] += effect["by"]
    rows.update({key: value for key, value in effect.get("replace", ()) if key in rows})
    rows.update(effect.get("put", ()))
    return rows


def _count(rows: Rows, effect: Mapping[str, Any]) -> int:
    """Return how many rows a delete or an update finds."""
    return sum(key in rows for key in (*effect.get("delete", ()), *effect.get("add", ())))


def _rows(dataset: Any) -> Rows:
    table = dataset.to_table(columns=["id", "value"])
    ids = table["id"].to_pylist()
    assert len(ids) == len(set(ids)), "rows appear twice"
    return dict(zip(ids, table["value"].to_pylist(), strict=True))


def _check_other_versions(library: Any, path: str, made: Run, left: Sequence[int], states: Mapping[int, Rows]) -> None:
    """Check the versions that no writer logged as a change of rows.

    They are those of compactions, or of changes whose rows others had deleted before they were repeated.
    """
    logged = made.commits
    without_effect = Counter(each["version"] for each in made.entries if each["kind"].endswith(" of nothing"))
    for version in set(left) - set(logged) - {1}:
        dataset = library.dataset(path, version=version)
        operation = dataset.read_transaction(version).operation
        name = getattr(operation, "name", type(operation).__name__)
        assert name in ("Rewrite", "ReserveFragments") or version in without_effect, f"version {version} is {name}"
        if version in without_effect:
            assert _rows(dataset) == states[version], f"version {version}"


def _check_tags(library: Any, path: str, made: Run, states: Mapping[int, Rows]) -> None:
    expected: dict[str, int] = {}
    for entry in made.entries:
        if entry["kind"] == "tag":
            expected[entry["name"]] = entry["version"]
        elif entry["kind"] == "untag":
            del expected[entry["name"]]
    assert {name: tag["version"] for name, tag in library.dataset(path).tags.list().items()} == expected
    for name, version in expected.items():
        assert _rows(library.dataset(path, version=name)) == states[version], name


def _check_branches(library: Any, path: str, made: Run, states: Mapping[int, Rows]) -> None:
    expected: dict[str, Rows] = {}
    for entry in made.entries:
        if entry["kind"] == "branch":
            expected[entry["name"]] = states[entry["version"]]
        elif entry["kind"] == "unbranch":
            del expected[entry["name"]]
        elif entry["kind"] == "on branch":
            expected[entry["name"]] = _after(expected[entry["name"]], entry["change"])
    dataset = library.dataset(path)
    assert set(dataset.branches.list()) == set(expected)
    for name, rows in expected.items():
        assert _rows(dataset.checkout_version((name, None))) == rows, name


# -- writers -----------------------------------------------------------------------------------------------------------


class _Writer:
    """Writer in one process."""

    def __init__(self, given: Mapping[str, Any], log: IO[str]) -> None:
        if given["library"] == OURS:
            import lance_dataset as library
        else:
            import lance as library
        self.library: Any = library
        self.given = given
        self.path = given["path"]
        self.log = log
        self.chance = random.Random(f"{given['seed']} {given['number']}")
        self.next_id = (given["number"] + 1) * 10**6
        self.next_name = 0
        self.tags: list[str] = []
        self.branches: list[str] = []

    def work(self) -> None:
        kinds = self.chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=self.given["turns"])
        for kind in kinds:
            getattr(self, f"_{kind}")()

    def _append(self) -> None:
        data = self._new_rows(5)
        self._commit("append", {"put": data}, lambda: (self._write(data, self.path).version, None))

    def _delete(self) -> None:
        ids = self._some_ids(3)

        def call() -> tuple[int, int]:
            dataset = self._open()
            count = dataset.delete(_among(ids))["num_deleted_rows"]
            return dataset.version, count

        self._commit("delete", {"delete": ids}, call)

    def _update(self) -> None:
        ids, by = self._some_ids(3), self.chance.randrange(1000)

        def call() -> tuple[int, int]:
            dataset = self._open()
            count = dataset.update({"value": f"value + {by}"}, where=_among(ids))["num_rows_updated"]
            return dataset.version, count

        self._commit("update", {"add": ids, "by": by}, call)

    def _replace(self) -> None:
        data = [(id, self.chance.randrange(1000)) for id in self._some_ids(3)]
        self._merge("replace", {"replace": data}, data, lambda merge: merge.when_matched_update_all())

    def _upsert(self) -> None:
        own = [(self.next_id - 1 - each, self.chance.randrange(1000)) for each in range(3)]
        data = [row for row in own if row[0] >= (self.given["number"] + 1) * 10**6] + self._new_rows(2)
        self._merge(
            "upsert",
            {"put": data},
            data,
            lambda merge: merge.when_matched_update_all().when_not_matched_insert_all(),
        )

    def _merge(
        self, kind: str, effect: Mapping[str, Any], data: Sequence[tuple[int, int]], rules: Callable[[Any], Any]
    ) -> None:
        def call() -> tuple[int, None]:
            dataset = self._open()
            rules(dataset.merge_insert("id")).execute(_table(data))
            return dataset.version, None

        self._commit(kind, effect, call)

    def _compact(self) -> None:
        def call() -> None:
            self._open().optimize.compact_files(target_rows_per_fragment=2 * START)

        self._upkeep("compact", call)

    def _cleanup(self) -> None:
        age = dt.timedelta(seconds=self.given["age"])

        def call() -> None:
            self._open().cleanup_old_versions(older_than=age, error_if_tagged_old_versions=False)

        self._upkeep("cleanup", call)

    def _tag(self) -> None:
        dataset = self._open()
        if self.tags and self.chance.random() < 0.4:
            name = self.tags.pop(self.chance.randrange(len(self.tags)))
            dataset.tags.delete(name)
            self._note("untag", name=name)
        else:
            name = self._new_name()
            dataset.tags.create(name, dataset.version)
            self.tags.append(name)
            self._note("tag", name=name, version=dataset.version)

    def _branch(self) -> None:
        dataset, choice = self._open(), self.chance.random()
        if not self.branches or choice < 0.3:
            name = self._new_name()
            version = dataset.version
            dataset.create_branch(name)
            self.branches.append(name)
            self._note("branch", name=name, version=version)
        elif choice < 0.45:
            name = self.branches.pop(self.chance.randrange(len(self.branches)))
            dataset.branches.delete(name)
            self._note("unbranch", name=name)
        else:
            name = self.chance.choice(self.branches)
            branch = dataset.checkout_version((name, None))
            if choice < 0.75:
                data = self._new_rows(3)
                self._write(data, branch)
                change: dict[str, Any] = {"put": data}
            else:
                ids = self.chance.sample(branch.to_table(columns=["id"])["id"].to_pylist(), 3)
                branch.delete(_among(ids))
                change = {"delete": ids}
            self._note("on branch", name=name, change=change)

    # parts

    def _open(self) -> Any:
        return self.library.dataset(self.path)

    def _write(self, data: Sequence[tuple[int, int]], where: Any) -> Any:
        return self.library.write_dataset(_table(data), where, mode="append")

    def _new_rows(self, count: int) -> list[tuple[int, int]]:
        self.next_id += count
        return [(self.next_id - 1 - each, self.chance.randrange(1000)) for each in range(count)]

    def _new_name(self) -> str:
        self.next_name += 1
        return f"{self.given['number']}-{self.next_name}"

    def _some_ids(self, count: int) -> list[int]:
        """Choose ids, among them new ones more often, so that changes meet."""
        ids = sorted(self._open().to_table(columns=["id"])["id"].to_pylist())
        return list({self.chance.choice(ids[-100:] if self.chance.random() < 0.5 else ids) for _ in range(count)})

    def _commit(self, kind: str, effect: Mapping[str, Any], call: Callable[[], tuple[int, int | None]]) -> None:
        effect = {key: sorted(set(value)) if isinstance(value, list) else value for key, value in effect.items()}
        for attempt in range(_ATTEMPTS):
            try:
                version, count = call()
            except OSError as error:
                self._wait(error, attempt)
                continue
            if count == 0:
                self._note(f"{kind} of nothing", version=version)
            else:
                self._note(kind, version=version, count=count, effect=effect, attempts=attempt + 1)
            return
        raise RuntimeError(f"{self.given['library']} failed to commit {kind} {_ATTEMPTS} times")

    def _upkeep(self, kind: str, call: Callable[[], None]) -> None:
        """Try something that may give up, as it changes no rows."""
        try:
            call()
        except OSError as error:
            self._wait(error, 0)
            kind += " given up"
        self._note(kind)

    def _wait(self, error: OSError, attempt: int) -> None:
        if not any(word in str(error) for word in _LOST):
            raise error
        time.sleep(0.01 * self.chance.random() * min(attempt + 1, 20))

    def _note(self, kind: str, **entry: Any) -> None:
        common = {"kind": kind, "library": self.given["library"], "writer": self.given["number"]}
        print(json.dumps({**common, **entry}), file=self.log)


def _table(data: Sequence[tuple[int, int]]) -> pa.Table:
    columns = zip(*data, strict=True) if data else ((), ())
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)


def _among(ids: Sequence[int]) -> str:
    return f"id in ({', '.join(map(str, ids))})"


if __name__ == "__main__":
    begin_together(lambda given, _begin, log: _Writer(given, log).work())
