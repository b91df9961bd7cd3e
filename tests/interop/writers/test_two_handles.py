"""Tests of random changes through two handles of this package and one of the reference, some on older versions.

After every step both libraries read all versions, which must equal a model in memory. ``HYPOTHESIS_PROFILE=long`` tries
other and longer histories.
"""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from support.tables.equality import assert_same

import lance_dataset

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
QUICK = {"storage_options": {"local_fsync": "false"}}
OURS, OURS_TOO, REFERENCE = range(3)
handles = st.sampled_from([OURS, OURS_TOO, REFERENCE])
own_handles = st.sampled_from([OURS, OURS_TOO])
#: Kinds of versions on top of which an earlier computed change cannot be committed.
REPLACING = {"overwrite", "restore"}


@dataclass(frozen=True)
class Version:
    """The model of a version: the kind of change, its rows in order, its config."""

    kind: str
    ids: tuple[int, ...]
    config: tuple[tuple[str, str], ...] = ()
    changed: str = ""


def table_of(ids: tuple[int, ...]) -> pa.Table:
    numbers = pa.array(ids, pa.int64())
    return pa.table({"id": numbers, "text": pa.array([f"row {each}" for each in ids], pa.string())})


class TwoHandles(RuleBasedStateMachine):
    tags = Bundle("tags")

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.TemporaryDirectory(dir=memory)
        self.uri = str(Path(self.folder.name, "t.lance"))
        self.next_id = 0
        self.model: dict[int, Version] = {}
        self.tagged: dict[str, int] = {}
        self.seen: dict[int, Any] = {}

    def teardown(self) -> None:
        self.seen.clear()
        self.folder.cleanup()

    # -- helpers -------------------------------------------------------------------------------------------------

    @property
    def latest(self) -> int:
        return max(self.model)

    def new_rows(self, count: int) -> tuple[int, ...]:
        self.next_id += count
        return tuple(range(self.next_id - count, self.next_id))

    def open(self, handle: int, version: Any = None) -> Any:
        if handle == REFERENCE:
            return lance.dataset(self.uri, version=version)
        return lance_dataset.dataset(self.uri, version=version, **QUICK)

    def write(self, handle: int, ids: tuple[int, ...], mode: str, **options: Any) -> Any:
        """Write rows on top of the newest version."""
        if handle == REFERENCE:
            return lance.write_dataset(table_of(ids), self.uri, mode=mode, **options)
        return lance_dataset.write_dataset(table_of(ids), self.uri, mode=mode, **options, **QUICK)

    def lost(self, handle: int) -> bool:
        """Return True if a cleanup removed the version of a handle, or a later one."""
        return any(number not in self.model for number in range(self.seen[handle].version, self.latest))

    def between(self, handle: int) -> list[Version]:
        """Return the versions committed since the version of a handle."""
        shown = self.seen[handle].version
        return [version for number, version in self.model.items() if number > shown]

    def made(self, handle: int, version: Version) -> None:
        """Record a change as the next version, which its handle shows."""
        self.model[self.latest + 1] = version
        assert self.seen[handle].version == self.latest

    # -- changes -------------------------------------------------------------------------------------------------

    @initialize(rows=st.integers(0, 12), stable=st.booleans(), new_names=st.booleans())
    def create(self, rows: int, stable: bool, new_names: bool) -> None:
        options = {"enable_stable_row_ids": stable, "enable_v2_manifest_paths": new_names}
        ids = self.new_rows(rows)
        lance_dataset.write_dataset(table_of(ids), self.uri, max_rows_per_file=5, **options, **QUICK)
        self.model[1] = Version("create", ids)
        self.seen = {handle: self.open(handle) for handle in (OURS, OURS_TOO, REFERENCE)}

    @rule(handle=handles, rows=st.integers(0, 12))
    def append(self, handle: int, rows: int) -> None:
        ids = self.new_rows(rows)
        before = self.model[self.latest]
        self.seen[handle] = self.write(handle, ids, "append", max_rows_per_file=5)
        self.made(handle, Version("append", before.ids + ids, before.config))

    @rule(handle=own_handles, rows=st.integers(1, 6))
    def append_of_files(self, handle: int, rows: int) -> None:
        """Append files written against the version of the handle, with a separate commit."""
        ids, shown = self.new_rows(rows), self.seen[handle]
        fragments = lance_dataset.fragment.write_fragments(table_of(ids), shown)
        operation = lance_dataset.LanceOperation.Append(fragments)
        replaced = any(version.kind in REPLACING for version in self.between(handle))
        lost = self.lost(handle)
        try:
            made = lance_dataset.LanceDataset.commit(self.uri, operation, read_version=shown.version, **QUICK)
        except lance_dataset.errors.CommitConflictError:
            assert replaced or lost
            return
        assert not replaced
        before, self.seen[handle] = self.model[self.latest], made
        self.made(handle, Version("append", before.ids + ids, before.config))

    @rule(handle=handles, chosen=st.sets(st.integers(0, 40), max_size=8), rest=st.integers(0, 3))
    def delete(self, handle: int, chosen: set[int], rest: int) -> None:
        """Delete rows of the version of the handle, some of which may not exist in the newest."""
        shown = self.model[self.seen[handle].version].ids
        ids = {shown[number] for number in chosen if number < len(shown)}
        if rest == 0:  # whole fragments
            ids |= set(shown[:5])
        between, lost = self.between(handle), self.lost(handle)
        replaced = any(version.kind in REPLACING for version in between)
        predicate = f"id in ({', '.join(map(str, sorted(ids)))})" if ids else "false"
        try:
            done = self.seen[handle].delete(predicate)
        except OSError:
            assert replaced or lost
            self.seen[handle] = self.open(handle)
            return
        # A delete that was computed again, because of the same rows or fragments, used the newest version.
        assert not replaced or between[0].kind not in REPLACING
        before = self.model[self.latest]
        left = tuple(each for each in before.ids if each not in ids)
        assert done["num_deleted_rows"] == len(before.ids) - len(left)
        self.made(handle, Version("delete", left, before.config))

    @rule(handle=handles, rows=st.integers(0, 12))
    def overwrite(self, handle: int, rows: int) -> None:
        ids = self.new_rows(rows)
        before = self.model[self.latest]
        self.seen[handle] = self.write(handle, ids, "overwrite", max_rows_per_file=5)
        self.made(handle, Version("overwrite", ids, before.config))

    @rule(handle=handles)
    def restore(self, handle: int) -> None:
        shown = self.model[self.seen[handle].version]
        self.seen[handle].restore()
        self.made(handle, Version("restore", shown.ids, shown.config))

    @rule(handle=handles)
    def compact(self, handle: int) -> None:
        before = self.model[self.latest]
        changed = bool(self.between(handle))
        try:
            self.seen[handle].optimize.compact_files()
        except OSError:
            assert changed
            self.seen[handle] = self.open(handle)
        newest = self.open(REFERENCE)
        for number in range(self.latest + 1, newest.version + 1):  # ids are reserved first, without a change of rows
            ids = tuple(newest.checkout_version(number).to_table()["id"].to_pylist())
            assert sorted(ids) == sorted(before.ids)  # rows of new fragments follow those that were not rewritten
            self.model[number] = Version("compaction", ids, before.config)

    @rule(handle=handles, key=st.sampled_from("ab"), value=st.sampled_from(["1", "2", None]))
    def configure(self, handle: int, key: str, value: str | None) -> None:
        same = self.lost(handle) or any(
            key == version.changed or version.kind in REPLACING for version in self.between(handle)
        )
        try:
            self.seen[handle].update_config({key: value})
        except OSError:
            assert same
            self.seen[handle] = self.open(handle)
            return
        before = self.model[self.latest]
        config = {**dict(before.config), key: value}
        left = tuple(sorted((name, text) for name, text in config.items() if text is not None))
        self.made(handle, Version("config", before.ids, left, changed=key))

    @rule(handle=own_handles)
    def clean_up(self, handle: int) -> None:
        """Remove versions before the one shown, except those with a tag."""
        shown = self.seen[handle].version
        self.seen[handle].cleanup_old_versions(
            older_than=dt.timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
        )
        kept = {number for number in self.model if number >= shown} | set(self.tagged.values())
        self.model = {number: version for number, version in self.model.items() if number in kept}
        for each in self.seen:
            if self.seen[each].version not in kept:
                self.seen[each] = self.open(each)

    # -- references ----------------------------------------------------------------------------------------------

    @rule(target=tags, handle=handles, name=st.sampled_from(["x", "y", "z"]))
    def tag(self, handle: int, name: str) -> str:
        shown = self.seen[handle].version
        if name in self.tagged:
            self.seen[handle].tags.update(name, shown)
        else:
            self.seen[handle].tags.create(name, shown)
        self.tagged[name] = shown
        return name

    @rule(handle=handles, name=tags)
    def untag(self, handle: int, name: str) -> None:
        if name in self.tagged:
            self.seen[handle].tags.delete(name)
            del self.tagged[name]

    # -- looking -------------------------------------------------------------------------------------------------

    @rule(handle=handles, number=st.integers(0, 100))
    def check_out(self, handle: int, number: int) -> None:
        versions = sorted(self.model)
        self.seen[handle] = self.seen[handle].checkout_version(versions[number % len(versions)])

    @rule(handle=handles)
    def check_out_latest(self, handle: int) -> None:
        self.seen[handle].checkout_latest()
        assert self.seen[handle].version == self.latest

    @rule(handle=handles, chosen=st.lists(st.integers(0, 40), max_size=6))
    def look(self, handle: int, chosen: list[int]) -> None:
        """Check that a handle shows its version, whatever was committed later."""
        shown = self.model[self.seen[handle].version]
        expected = table_of(shown.ids)
        assert_same(self.seen[handle].to_table(), expected)
        rows = [number for number in chosen if number < len(shown.ids)]
        assert_same(self.seen[handle].take(rows), expected.take(pa.array(rows, pa.int64())))

    @invariant()
    def both_find_the_model(self) -> None:
        if not self.model:
            return
        ours, theirs = self.open(OURS), self.open(REFERENCE)
        assert ours.version == theirs.version == self.latest
        assert [entry["version"] for entry in ours.versions()] == sorted(self.model)
        assert [entry["version"] for entry in theirs.versions()] == sorted(self.model)
        for number, version in self.model.items():
            expected = table_of(version.ids)
            here, there = ours.checkout_version(number), theirs.checkout_version(number)
            assert_same(here.to_table(), expected)
            assert here.config() == dict(version.config)
            assert_same(here.to_table(with_row_id=True), there.to_table(with_row_id=True))
            assert there.config() == dict(version.config)
        assert {name: tag["version"] for name, tag in ours.tags.list().items()} == self.tagged
        assert {name: tag["version"] for name, tag in theirs.tags.list().items()} == self.tagged


TestTwoHandles = TwoHandles.TestCase
TestTwoHandles.settings = settings(
    max_examples=300 if LONG else 10, stateful_step_count=40 if LONG else 16, deadline=None
)
