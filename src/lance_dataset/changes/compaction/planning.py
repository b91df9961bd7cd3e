"""Choice of the fragments to rewrite together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.remap import indices_to_remap
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.checks import is_mixture
from lance_dataset.table.fragment import LEGACY_VERSION
from lance_dataset.table.indices.coverage import check_coverage, covering_indices
from lance_dataset.table.indices.system import with_current_coverage
from lance_dataset.table.manifest import Manifest
from lance_dataset.types.schema import Schema

__all__ = ["Limits", "Plan", "Task", "plan_compaction", "plan_rewrite"]

#: Types whose nulls legacy files hold: as empty values, or because there is nothing else.
_NULLS_IN_LEGACY = frozenset({"null", "string", "large_string", "binary", "large_binary", "json"})


@dataclass(frozen=True)
class Limits:
    """Limits on the fragments to compact.

    Attributes
    ----------
    target_rows
        Fragments with fewer physical rows are joined with their neighbours.
    max_deleted
        A fragment with a larger fraction of deleted rows is rewritten; None to keep deletions.
    max_fragments, max_rows, max_bytes
        Maximum number of fragments, live rows and bytes of data files to read in total; None for no limit.
    excluded
        Ids of fragments that are kept. Fragments on both sides of them are not joined.
    """

    target_rows: int
    max_deleted: float | None
    max_fragments: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = None
    excluded: Collection[int] = frozenset()


@dataclass(frozen=True)
class Task:
    """Neighbouring fragments that are rewritten together.

    Attributes
    ----------
    positions
        Their positions in the version.
    fragments
        Their readers.
    num_rows
        Number of live rows.
    """

    positions: tuple[int, ...]
    fragments: tuple[FragmentReader, ...]

    @property
    def num_rows(self) -> int:
        """Number of live rows in all fragments."""
        return sum(fragment.num_rows for fragment in self.fragments)

    @property
    def num_bytes(self) -> int:
        """Size of the data files in bytes."""
        return sum(reader.num_bytes for reader in self.fragments)


@dataclass(frozen=True)
class Plan:
    """Plan of a compaction.

    Attributes
    ----------
    tasks
        Groups of fragments to rewrite.
    version
        File version of the new fragments.
    storage_version
        Storage version that the table gets; None if it keeps its own.
    prunes_dictionaries
        True if dictionaries of the new fragments hold only values that rows have.
    """

    tasks: tuple[Task, ...]
    version: str
    storage_version: str | None
    prunes_dictionaries: bool = False


def plan_compaction(reader: TableReader, limits: Limits, version: str | None, *, deferred: bool = False) -> Plan:
    """Choose the fragments to compact.

    Parameters
    ----------
    reader
        Reader of the version to compact.
    limits
        Limits on the fragments.
    version
        File version of the new fragments; None for that of the table. Files of 0.1 and 2.x cannot be mixed. If this is
        2.x and the table has files of 0.1, all fragments are chosen, and the table gets this version.
    deferred
        True if indices keep their old row addresses, and a fragment-reuse index maps these to the new ones.

    Raises
    ------
    UnsupportedError
        An index covers a chosen fragment and cannot follow its rows, files of 0.1 cannot hold the data, or files of 0.1
        and 2.x would be mixed.
    """
    manifest = reader.manifest
    _check_blobs(manifest)
    version = version or manifest.storage_version
    present = manifest.fragment_list.columns.storage_versions
    upgrade = is_mixture(present | {version, manifest.storage_version})
    if upgrade:
        _check_upgrade(manifest, version, limits)
    section = with_current_coverage(manifest.index_section, reader.locator)
    manifest = replace(manifest, index_section=section)
    tasks = tuple(_tasks(reader, manifest, limits, everything=upgrade))
    if not upgrade:
        tasks = _limited(tasks, limits)
    chosen = {fragment.fragment.id for task in tasks for fragment in task.fragments}
    if chosen:
        check_coverage(manifest)
    if not deferred:
        indices_to_remap(manifest, chosen)
    if version == LEGACY_VERSION:
        _check_missing(manifest.schema, tasks)
    return Plan(tasks, version, version if upgrade else None)


def plan_rewrite(reader: TableReader, fragment_ids: Collection[int]) -> Plan:
    """Plan to rewrite the given fragments, each by itself, in the file version of the table.

    Values that no row has are left out of dictionaries, except in files of 0.1, which share one in the manifest.

    Raises
    ------
    UnsupportedError
        The table has files of 0.1 and of later versions, or files of 0.1 cannot hold the data.
    """
    manifest = reader.manifest
    _check_blobs(manifest)
    version = manifest.storage_version
    if is_mixture(manifest.fragment_list.columns.storage_versions | {version}):
        raise UnsupportedError(
            "the dataset has files of storage version 0.1 and of later ones, so single fragments cannot be rewritten: "
            "rewrite all with compact_files(data_storage_version='2.0') first"
        )
    tasks = tuple(
        _task([(position, fragment)])
        for position, fragment in enumerate(reader.fragments)
        if fragment.fragment.id in fragment_ids
    )
    if version == LEGACY_VERSION:
        _check_missing(manifest.schema, tasks)
    return Plan(tasks, version, None, prunes_dictionaries=version != LEGACY_VERSION)


def _check_blobs(manifest: Manifest) -> None:
    if manifest.blob_dataset_version:
        raise UnsupportedError(
            "the dataset keeps its blobs in a separate dataset, like releases around 0.20; it cannot be compacted"
        )


def _check_upgrade(manifest: Manifest, version: str, limits: Limits) -> None:
    if version == LEGACY_VERSION:
        raise UnsupportedError(
            f"Cannot write data files in version {version} to a dataset with default version "
            f"{manifest.storage_version}: V1 and V2 storage versions cannot be mixed; write the data into a new dataset"
        )
    partial = (limits.max_fragments, limits.max_rows, limits.max_bytes)
    if limits.excluded or any(limit is not None for limit in partial):
        raise UnsupportedError(
            f"from storage version 0.1 to {version} all fragments must be rewritten together, because the versions "
            "cannot be mixed: leave out excluded_fragment_ids and the limits on the source"
        )


def _check_missing(schema: Schema, tasks: Sequence[Task]) -> None:
    """Raise UnsupportedError if a fragment lacks a column whose nulls legacy files cannot hold."""
    needed = [node for node in schema.walk() if node.logical_type not in _NULLS_IN_LEGACY]
    for reader in (reader for task in tasks for reader in task.fragments):
        held = {field_id for file in reader.fragment.files for field_id, _ in file.columns}
        missing = next((node for node in needed if node.id not in held), None)
        if missing is not None:
            raise UnsupportedError(
                f"fragment {reader.fragment.id} lacks the column {missing.name!r}, so its values there are null; files "
                "of storage version 0.1 cannot hold such nulls: compact with data_storage_version='2.0' or later"
            )


def _tasks(reader: TableReader, manifest: Manifest, limits: Limits, *, everything: bool) -> Iterator[Task]:
    """Yield runs of neighbouring candidates that the same indices cover, cut to the target size."""
    run: list[tuple[int, FragmentReader]] = []
    worth_it = False
    indices: frozenset[int] | None = None
    covering = covering_indices(manifest)
    for position, fragment in enumerate(reader.fragments):
        alone = everything or _has_deletions_to_drop(fragment, limits)
        small = fragment.physical_rows < limits.target_rows
        chosen = (alone or small) and fragment.fragment.id not in limits.excluded
        found = covering(fragment.fragment.id) if chosen else None
        if found != indices:
            yield from _cut(run, limits) if worth_it else ()
            run, worth_it, indices = [], False, found
        if chosen:
            run.append((position, fragment))
            worth_it = worth_it or alone or len(run) > 1
    yield from _cut(run, limits) if worth_it else ()


def _has_deletions_to_drop(fragment: FragmentReader, limits: Limits) -> bool:
    if limits.max_deleted is None or fragment.fragment.deletion_file is None:
        return False
    deleted = fragment.physical_rows - fragment.num_rows
    return deleted / max(fragment.physical_rows, 1) > limits.max_deleted


def _cut(run: Sequence[tuple[int, FragmentReader]], limits: Limits) -> Iterator[Task]:
    """Yield tasks with at least the target number of live rows each; the last one takes the rest."""
    left = sum(fragment.num_rows for _, fragment in run)
    part: list[tuple[int, FragmentReader]] = []
    rows = 0
    for position, fragment in run:
        part.append((position, fragment))
        rows += fragment.num_rows
        left -= fragment.num_rows
        if rows >= limits.target_rows and left >= limits.target_rows:
            yield _task(part)
            part, rows = [], 0
    if part:
        yield _task(part)


def _task(part: Sequence[tuple[int, FragmentReader]]) -> Task:
    return Task(tuple(position for position, _ in part), tuple(fragment for _, fragment in part))


def _limited(tasks: Sequence[Task], limits: Limits) -> tuple[Task, ...]:
    """Return the first tasks that together stay within the limits on the source."""
    kept: list[Task] = []
    fragments = rows = size = 0
    for task in tasks:
        fragments += len(task.fragments)
        rows += task.num_rows
        size += task.num_bytes if limits.max_bytes is not None else 0
        used = ((fragments, limits.max_fragments), (rows, limits.max_rows), (size, limits.max_bytes))
        if any(limit is not None and amount > limit for amount, limit in used):
            break
        kept.append(task)
    return tuple(kept)
