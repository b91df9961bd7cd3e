"""Random operations on one dataset through a network that fails at random, checked against a model.

Each operation goes through the proxy with a fresh client. Another client, directly at the server, then sees the state
before the operation or the state after it, and the latter if the operation returned.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import lance_dataset
from lance_dataset.errors import LanceError
from support.stores.s3_proxy import (
    CUT_ANSWER,
    LATE,
    LOSE_ANSWER,
    LOSE_REQUEST,
    REPLAY,
    SHORT_ANSWER,
    STALE_LIST,
    WRONG_LIST_SIZE,
    WRONG_SIZE,
    Fault,
    Proxy,
)
from support.stores.s3_server import S3Server

__all__ = ["CHANGES", "LIMITS", "LYING", "NETWORK", "READS", "STALE", "Chaos", "State"]

#: Faults of a network and an overloaded server.
NETWORK: tuple[Fault, ...] = (LATE, CUT_ANSWER, LOSE_ANSWER, LOSE_REQUEST, REPLAY, 500, 503, 429)
#: Faults of a server whose answers are wrong.
LYING: tuple[Fault, ...] = (SHORT_ANSWER, WRONG_SIZE, WRONG_LIST_SIZE)
#: Fault of a server whose lists are late.
STALE: tuple[Fault, ...] = (STALE_LIST,)
LIMITS = {"client_max_retries": "3", "client_retry_timeout": "5", "timeout": "5s", "download_retry_count": "3"}
#: Bounds for one operation: its requests, and seconds on a busy machine.
_REQUESTS, _SECONDS = 1500, 100.0

Rows = dict[int, int]


@dataclass(frozen=True)
class State:
    """Everything that a client sees.

    Attributes
    ----------
    rows
        Values by id; None if there is no dataset.
    tags
        Rows of tagged versions, by name.
    branches
        Rows of branches, by name.
    """

    rows: Rows | None = None
    tags: dict[str, Rows] = field(default_factory=dict)
    branches: dict[str, Rows] = field(default_factory=dict)


def _table(rows: Rows) -> pa.Table:
    return pa.table({"id": pa.array(rows, pa.int64()), "value": pa.array(rows.values(), pa.int64())})


def _rows(table: pa.Table) -> Rows:
    ids = table["id"].to_pylist()
    rows = dict(zip(ids, table["value"].to_pylist(), strict=True))
    assert len(rows) == len(ids), f"rows twice: {ids}"
    return rows


class Chaos:
    """A dataset behind a proxy, its model, and what happened.

    Parameters
    ----------
    server, proxy, bucket
        Where the dataset is, and the network in between.
    seed
        Seed of operations and faults.
    kinds
        Possible faults.
    often
        Part of the requests that have a fault.
    """

    def __init__(
        self, server: S3Server, proxy: Proxy, bucket: str, seed: int, kinds: tuple[Fault, ...], often: float
    ) -> None:
        self.chance = random.Random(seed)
        self.state = State()
        self.done: dict[str, int] = {}
        self.failed: dict[str, int] = {}
        self.faults: dict[str | int, int] = {}
        self._faults = random.Random(seed + 1)
        self._kinds, self._often = kinds, often
        self._proxy = proxy
        self._uri = f"s3://{bucket}/t"
        self._clean, self._disturbed = server.options, {**proxy.server.options, **LIMITS}
        self._next = 0
        self._past: list[State] = [self.state]

    def open(self, version: Any = None, clean: bool = False) -> lance_dataset.LanceDataset:
        """Open the dataset through the proxy, or directly."""
        options = self._clean if clean else self._disturbed
        return lance_dataset.dataset(self._uri, version=version, storage_options=options)

    def write(self, rows: Rows, mode: str) -> None:
        """Write rows through the proxy."""
        lance_dataset.write_dataset(_table(rows), self._uri, mode=mode, storage_options=self._disturbed)

    def new_rows(self) -> Rows:
        """Return rows that were never there."""
        count = self.chance.randint(1, 20)
        first, self._next = self._next, self._next + count
        return {number: self.chance.randrange(1000) for number in range(first, self._next)}

    def some_ids(self) -> list[int]:
        """Return some ids of the dataset.

        A change through an old list sees the rows of an old version, so there only ids that all versions have are used.
        """
        known = set(self.state.rows or ())
        if self._kinds == STALE:
            known = known.intersection(*(state.rows for state in self._past if state.rows is not None))
        ids = sorted(known)
        return self.chance.sample(ids, min(len(ids), self.chance.randint(1, 5)))

    def step(self, name: str = "") -> None:
        """Make one operation, and compare the dataset with the model."""
        name = name or self._choice()
        before = self.state
        requests, start = len(self._proxy.requests), time.monotonic()
        error: LanceError | None = None
        after = before
        with self._faulty():
            try:
                if name in READS:
                    READS[name](self, self._past if self._kinds == STALE else [self.state])
                else:
                    work, after = CHANGES[name](self)
                    work()
            except LanceError as caught:
                error = caught
        took, asked = time.monotonic() - start, len(self._proxy.requests) - requests
        assert took < _SECONDS, f"{name} took {took:.1f} seconds: {error!r}"
        assert asked < _REQUESTS, f"{name} made {asked} requests: {error!r}"
        counts = self.done if error is None else self.failed
        counts[name] = counts.get(name, 0) + 1
        seen = self.seen()
        if error is None:
            assert seen == after, f"{name} returned, but its effect is not there: {_difference(seen, after)}"
        else:
            assert seen in (before, after), f"{name} raised {error!r}, half of it is there: {_difference(seen, after)}"
        self.state = seen
        self._past.append(seen)

    def seen(self) -> State:
        """Return what a client without a proxy sees."""
        try:
            dataset = self.open(clean=True)
        except lance_dataset.errors.DatasetNotFoundError:
            return State()
        rows = _rows(dataset.to_table())
        assert dataset.count_rows() == len(rows)
        tags = {name: _rows(self.open(name, clean=True).to_table()) for name in dataset.tags.list()}
        branches = {name: _rows(dataset.checkout_version((name, None)).to_table()) for name in dataset.branches.list()}
        return State(rows, tags, branches)

    def check_all(self) -> None:
        """Read every version that is listed."""
        for version in self.open(clean=True).versions():
            assert self.open(version["version"], clean=True).validate() is None

    def _choice(self) -> str:
        if self.state.rows is None:
            return "create"
        return self.chance.choice([name for name in (*CHANGES, *READS) if name != "create"])

    @contextlib.contextmanager
    def _faulty(self) -> Iterator[None]:
        quiet = self._proxy.fault

        def fault(method: str, path: str) -> Fault:
            chosen = self._faults.choice(self._kinds) if self._faults.random() < self._often else None
            if chosen is not None:
                self.faults[chosen] = self.faults.get(chosen, 0) + 1
            return chosen

        self._proxy.fault = fault
        try:
            yield
        finally:
            self._proxy.fault = quiet


def _difference(seen: State, wanted: State) -> str:
    return f"{seen} instead of {wanted}"


Change = tuple[Callable[[], Any], State]


def _create(chaos: Chaos) -> Change:
    rows = chaos.new_rows()
    return lambda: chaos.write(rows, "create"), State(rows)


def _append(chaos: Chaos) -> Change:
    rows = chaos.new_rows()
    return lambda: chaos.write(rows, "append"), replace(chaos.state, rows={**(chaos.state.rows or {}), **rows})


def _delete(chaos: Chaos) -> Change:
    gone = chaos.some_ids()
    kept = {number: value for number, value in (chaos.state.rows or {}).items() if number not in gone}
    text = ", ".join(map(str, gone)) or "-1"
    return lambda: chaos.open().delete(f"id in ({text})"), replace(chaos.state, rows=kept)


def _update(chaos: Chaos) -> Change:
    value, ids = chaos.chance.randrange(1000), chaos.some_ids()
    text = ", ".join(map(str, ids)) or "-1"
    rows = {**(chaos.state.rows or {}), **dict.fromkeys(ids, value)}
    return (
        lambda: chaos.open().update({"value": str(value)}, where=f"id in ({text})"),
        replace(chaos.state, rows=rows),
    )


def _merge_insert(chaos: Chaos) -> Change:
    rows = {**dict.fromkeys(chaos.some_ids(), 5), **chaos.new_rows()}

    def work() -> None:
        builder = chaos.open().merge_insert("id")
        builder.when_matched_update_all().when_not_matched_insert_all().execute(_table(rows))

    return work, replace(chaos.state, rows={**(chaos.state.rows or {}), **rows})


def _compact(chaos: Chaos) -> Change:
    return lambda: chaos.open().optimize.compact_files(), chaos.state


def _cleanup(chaos: Chaos) -> Change:
    def work() -> None:
        chaos.open().cleanup_old_versions(dt.timedelta(0), error_if_tagged_old_versions=False)

    return work, chaos.state


def _tag(chaos: Chaos) -> Change:
    tags = chaos.state.tags
    if len(tags) > 2:
        name = chaos.chance.choice(sorted(tags))
        return lambda: chaos.open().tags.delete(name), replace(
            chaos.state, tags={each: rows for each, rows in tags.items() if each != name}
        )
    name = f"tag{chaos.chance.randrange(10**9)}"
    version = chaos.open(clean=True).version
    return (
        lambda: chaos.open().tags.create(name, version),
        replace(chaos.state, tags={**tags, name: chaos.state.rows or {}}),
    )


def _branch(chaos: Chaos) -> Change:
    name = f"side{chaos.chance.randrange(10**9)}"
    branches = {**chaos.state.branches, name: chaos.state.rows or {}}
    version = chaos.open(clean=True).version  # an old list would give an old version
    return lambda: chaos.open().create_branch(name, version), replace(chaos.state, branches=branches)


def _scan(chaos: Chaos, past: list[State]) -> None:
    assert _rows(chaos.open().to_table()) in [state.rows for state in past]


def _count(chaos: Chaos, past: list[State]) -> None:
    assert chaos.open().count_rows() in [len(state.rows) for state in past if state.rows is not None]


def _take(chaos: Chaos, past: list[State]) -> None:
    rows = chaos.state.rows or {}
    if not rows:
        return
    places = [chaos.chance.randrange(len(rows)) for _ in range(3)]
    taken = chaos.open().take(places).to_pylist()
    possible = {item for state in past for item in (state.rows or {}).items()}
    assert {(row["id"], row["value"]) for row in taken} <= possible


def _versions(chaos: Chaos, past: list[State]) -> None:
    numbers = [each["version"] for each in chaos.open().versions()]
    if len(past) == 1:
        assert numbers == [each["version"] for each in chaos.open(clean=True).versions()]


CHANGES: dict[str, Callable[[Chaos], Change]] = {
    "create": _create,
    "append": _append,
    "delete": _delete,
    "update": _update,
    "merge_insert": _merge_insert,
    "compact": _compact,
    "cleanup": _cleanup,
    "tag": _tag,
    "branch": _branch,
}
READS: dict[str, Callable[[Chaos, list[State]], None]] = {
    "scan": _scan,
    "count": _count,
    "take": _take,
    "versions": _versions,
}
