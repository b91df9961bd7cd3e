"""Work that is due by the policy of a table."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lance_dataset.changes.compaction.planning import Task
from lance_dataset.changes.compaction.running import planned
from lance_dataset.changes.compaction.settings import CompactionSettings
from lance_dataset.changes.indexing.optimize_indices import definition_like
from lance_dataset.errors import UnsupportedError
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.maintenance_policy import MaintenancePolicy
from lance_dataset.table.cleanup.auto import configured_limits
from lance_dataset.table.cleanup.durations import format_duration
from lance_dataset.table.cleanup.plan import CleanupPolicy

__all__ = ["DueCompaction", "DueIndices", "cleanup_policy", "compaction_options", "due_compaction", "due_indices"]

_TWO_WEEKS = dt.timedelta(days=14)
_MICROSECOND = dt.timedelta(microseconds=1)


# -- compaction ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DueCompaction:
    """Fragments that a compaction would rewrite.

    Attributes
    ----------
    is_due
        True if the policy says that it is worth it.
    reason
        Why, or why not.
    num_fragments, num_rows
        Fragments to rewrite, and their live rows.
    """

    is_due: bool
    reason: str
    num_fragments: int = 0
    num_rows: int = 0


def compaction_options(snapshot: Snapshot, policy: MaintenancePolicy) -> dict[str, Any]:
    """Return the options of compaction that a policy sets; all others are those of the config of the table.

    Fragments that are small in rows but not in bytes are excluded if the config limits the size of files: they would
    be rewritten to as many fragments, by every run again.

    Raises
    ------
    InvalidInputError
        An option of compaction in the config has an invalid value.
    """
    share = policy.compact_deleted_share
    options: dict[str, Any] = {} if share is None else {"materialize_deletions_threshold": share}
    settings = CompactionSettings.of(options, snapshot.manifest.config)
    most = settings.max_bytes_per_file
    if most is None:
        return options
    plan = planned(snapshot, settings)
    if plan.storage_version is not None:  # all files change
        return options
    full = [
        reader.fragment.id
        for task in plan.tasks
        if _has_full_files(task, most) and not _num_sparse(task, settings)
        for reader in task.fragments
    ]
    return {**options, "excluded_fragment_ids": full} if full else options


def _has_full_files(task: Task, most: int) -> bool:
    """Return True if files of the largest size would hardly be fewer than the fragments."""
    return 3 * -(-task.num_bytes // most) > 2 * len(task.fragments)


def due_compaction(snapshot: Snapshot, policy: MaintenancePolicy) -> DueCompaction:
    """Return whether a table has enough small fragments, or fragments with enough deleted rows.

    Raises
    ------
    UnsupportedError
        The table cannot be compacted with the settings in its config.
    """
    settings = CompactionSettings.of(compaction_options(snapshot, policy), snapshot.manifest.config)
    plan = planned(snapshot, settings)
    joined = sum(len(task.fragments) for task in plan.tasks if len(task.fragments) > 1)
    sparse = sum(_num_sparse(task, settings) for task in plan.tasks)
    fragments = sum(len(task.fragments) for task in plan.tasks)
    rows = sum(task.num_rows for task in plan.tasks)
    if plan.storage_version is not None:
        return DueCompaction(True, f"files change to version {plan.storage_version}", fragments, rows)
    if joined >= policy.compact_min_fragments:
        least = policy.compact_min_fragments
        return DueCompaction(True, f"{joined:,} fragments can be joined, {least:,} suffice", fragments, rows)
    if sparse:
        share = settings.limits.max_deleted
        return DueCompaction(True, f"{sparse:,} fragments have more than {share:g} of deleted rows", fragments, rows)
    least = policy.compact_min_fragments
    return DueCompaction(False, f"{joined:,} fragments can be joined, {least:,} are needed")


def _num_sparse(task: Task, settings: CompactionSettings) -> int:
    """Return the number of fragments of a task with so many deleted rows that they are rewritten even alone."""
    most = settings.limits.max_deleted
    if most is None:
        return 0
    readers = [reader for reader in task.fragments if reader.fragment.deletion_file is not None]
    return sum((reader.physical_rows - reader.num_rows) / max(reader.physical_rows, 1) > most for reader in readers)


# -- indices ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DueIndices:
    """Indices that lack enough rows.

    Attributes
    ----------
    lacking
        Number of rows that each lacks, by name.
    refused
        Why this release cannot refresh an index, by name.
    """

    lacking: Mapping[str, int]
    refused: Mapping[str, str]


def due_indices(snapshot: Snapshot, policy: MaintenancePolicy) -> DueIndices:
    """Return the indices that lack as many rows as the policy allows, or more."""
    segments: dict[str, list[Segment]] = {}
    for segment in index_segments(snapshot.reader):
        if not segment.is_system:
            segments.setdefault(segment.name, []).append(segment)
    if not segments:
        return DueIndices({}, {})
    rows = {reader.fragment.id: reader.num_rows for reader in snapshot.reader.fragments}
    least = min(policy.indices_uncovered_rows, policy.indices_uncovered_share * sum(rows.values()))
    lacking: dict[str, int] = {}
    refused: dict[str, str] = {}
    for name, parts in segments.items():
        left = set(rows).difference(*(part.fragment_ids for part in parts))
        count = sum(rows[each] for each in left)
        if not count or count < least:
            continue
        try:
            definition_like(parts[-1])
        except UnsupportedError as error:
            refused[name] = str(error)
        else:
            lacking[name] = count
    return DueIndices(lacking, refused)


# -- cleanup ---------------------------------------------------------------------------------------------------------


def cleanup_policy(snapshot: Snapshot, policy: MaintenancePolicy) -> tuple[CleanupPolicy, str]:
    """Return which versions are old, and the same in words.

    A version that the automatic cleanup of the table would keep is never old: of two ages and of two numbers of
    versions, the larger one counts.

    Raises
    ------
    InvalidInputError
        A setting of the automatic cleanup has an invalid value.
    """
    nanos, retained = configured_limits(snapshot.manifest.config)
    ages = [each for each in (policy.cleanup_older_than, _age(nanos)) if each is not None]
    counts = [each for each in (policy.cleanup_retain_versions, retained) if each is not None]
    if not ages and not counts:
        ages = [_TWO_WEEKS]
    age, count = max(ages, default=None), max(counts, default=None)
    words = []
    if age is not None:
        words.append(f"at least {format_duration(int(age.total_seconds()))} old")
    if count is not None:
        words.append(f"not among the newest {count:,}")
    before = None if age is None else time.time_ns() - age // _MICROSECOND * 1000
    return CleanupPolicy(before_nanos=before, retain_versions=count, error_if_tagged=False), " and ".join(words)


def _age(nanos: int | None) -> dt.timedelta | None:
    if nanos is None:
        return None
    return dt.timedelta(microseconds=min(nanos // 1000, dt.timedelta.max // _MICROSECOND))
