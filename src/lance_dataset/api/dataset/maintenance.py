"""Maintenance of a dataset by its policy, and of its files: list, check and clean them up."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import pyarrow as pa

from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.api.statistics import LanceStats
from lance_dataset.arguments import check_duration, check_switch, checked_integer
from lance_dataset.callers import callers_level
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.shown import Shown
from lance_dataset.records.cleanup import (
    CleanupCandidateFile,
    CleanupExplanation,
    CleanupReferencedBranch,
    CleanupStats,
)

if TYPE_CHECKING:
    from lance_dataset.api.maintenance import MaintenanceRunner
    from lance_dataset.records.diagnosis import Diagnosis
    from lance_dataset.records.maintenance import MaintenanceReport
    from lance_dataset.records.repair import RepairReport
    from lance_dataset.table.cleanup.removal import Removed

__all__ = ["Maintained"]

Progress: TypeAlias = "Callable[[int, int | None], object]"


class Maintained(Shown):
    """Maintenance of the files of a dataset: list, check and clean them up."""

    @property
    def stats(self) -> LanceStats:
        """Statistics of the open version."""
        return LanceStats(self.snapshot)

    def validate(self, *, indices: bool = False, fragments: bool = True, progress: ProgressOption = None) -> None:
        """Check that the files of this version exist and agree with its manifest.

        The check covers sizes of files, numbers of rows, columns of the schema (each must open), deletion files, row
        ids and row versions (one for each row), uniqueness of row ids, index files, and files with values of blob
        columns. Values are not read. Use `explain_encodings` with ``deep=True`` to decode all of them. External objects
        of blob columns are not looked for. The shards of a MemWAL are checked with their rows.

        Parameters
        ----------
        indices
            True to compare all scalar indices with the table, too. All of their entries and of the values that they
            cover are read: each row must be found under its value, and under no other. Vector and full-text indices
            cannot be compared; a `UserWarning` names them.
        fragments
            False to open no data files, because other processes check them with `LanceFragment.validate`.
        progress
            True for a bar (tqdm), or a function of the numbers of fragments checked and in all.

        Raises
        ------
        CorruptFileError, MissingFileError
            A check failed. The message names the file.
        DamagedIndexError
            An index contradicts the table or itself. The message says for each what is wrong and how to mend it.
        """
        from lance_dataset.read.validation import validate_dataset

        count = len(self.snapshot.manifest.fragment_list)
        with reported_progress(progress, lambda: count, "validation", "fragment") as told:
            validate_dataset(self.snapshot, told, files=fragments)
        self._validate_shards()
        if indices:
            from lance_dataset.scan.validating import validate_indices

            for name, reason in validate_indices(self.snapshot).unchecked:
                warnings.warn(f"the index {name!r} was not checked: {reason}", UserWarning, stacklevel=callers_level())

    def _validate_shards(self) -> None:
        from lance_dataset.memwal.details import find_details
        from lance_dataset.memwal.examining.shards import validate_shards

        if find_details(self.snapshot.manifest) is not None:
            validate_shards(self.snapshot)

    @overload
    def doctor(
        self,
        *,
        repair: Literal[False] = False,
        execute: bool = False,
        drop_lost_rows: bool = False,
        restore_deleted_rows: bool = False,
        progress: ProgressOption = None,
    ) -> Diagnosis: ...
    @overload
    def doctor(
        self,
        *,
        repair: Literal[True],
        execute: bool = False,
        drop_lost_rows: bool = False,
        restore_deleted_rows: bool = False,
        progress: ProgressOption = None,
    ) -> RepairReport: ...
    def doctor(
        self,
        *,
        repair: bool = False,
        execute: bool = False,
        drop_lost_rows: bool = False,
        restore_deleted_rows: bool = False,
        progress: ProgressOption = None,
    ) -> Diagnosis | RepairReport:
        """Check the whole dataset: the files and indices of all versions and branches, tags, and what wastes space.

        The shards of a MemWAL are checked on each branch, with all rows that are not in the table.

        `lance_dataset.debug` has `diagnose` and `repair`, which do the same for a dataset that cannot be opened.

        A repair makes what can be made from what is there: lost versions by their transactions, indices, transaction
        files, hints, files of branches. Other damaged files are moved to a folder below ``_quarantine``, with a journal
        that says where they were. Nothing is deleted, and shards stay as they are. After a repair, this handle shows
        the newest version of its branch.

        Parameters
        ----------
        repair
            True to plan a repair, too.
        execute
            True to do what `repair` plans. By default, nothing is changed.
        drop_lost_rows
            True to let newest versions lose the fragments whose data files are lost. If these only have columns that
            were added later, the rows stay, and the columns become null. Older versions are not changed.
        restore_deleted_rows
            True to let rows return whose deletion file is lost, deleted ones as well as the former state of updated
            ones. The newest deletion file that the fragment had before is used, if there is one.
        progress
            True for a bar (tqdm), or a function of the numbers of versions, fragments and steps done and in all. The
            whole number grows while versions are read.

        Returns
        -------
        Diagnosis or RepairReport
            The former has ``findings``, each with what is wrong and what mends it; the latter, for a repair, has
            ``steps``, and what was found before and after. ``str`` makes a text of both.

        Raises
        ------
        InvalidInputError
            An argument of a repair is given without `repair`.
        TypeError
            An argument has the wrong type.
        """
        switches = {"execute": execute, "drop_lost_rows": drop_lost_rows, "restore_deleted_rows": restore_deleted_rows}
        for name, value in {"repair": repair, **switches}.items():
            check_switch(name, value)
        if not repair:
            useless = [name for name, value in switches.items() if value]
            if useless:
                raise InvalidInputError(f"{useless[0]} is for a repair; pass repair=True, too")
            return self._diagnosis(progress)
        from lance_dataset.changes.doctor.repairing import Consent
        from lance_dataset.changes.doctor.repairing import repair as mend
        from lance_dataset.memwal.examining.shards import examine_shards

        consent = Consent(drop_lost_rows, restore_deleted_rows)
        with reported_progress(progress, lambda: None, "repair", "unit") as told:
            report = mend(self.snapshot.location, execute=execute, consent=consent, progress=told, look=examine_shards)
        if report.executed:
            self.show(self.snapshot.newest())
        return report

    def _diagnosis(self, progress: ProgressOption) -> Diagnosis:
        from lance_dataset.changes.doctor.diagnosing import diagnose
        from lance_dataset.memwal.examining.shards import examine_shards

        with reported_progress(progress, lambda: None, "doctor", "unit") as told:
            return diagnose(self.snapshot.location, told, examine_shards)

    def cleanup_old_versions(
        self,
        older_than: dt.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool | None = False,
        error_if_tagged_old_versions: bool | None = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        delete_concurrency: int | None = None,
        progress: ProgressOption = None,
        run_shares: Callable[[Sequence[Callable[[], object]]], Sequence[object]] | None = None,
    ) -> CleanupStats:
        """Remove old versions and the files that no other version needs.

        The version that this handle shows and all later ones are kept. So are versions with a tag, versions that a
        branch started from while the branch needs their files, and all files that branches and detached versions need.
        A removed version cannot be opened or restored any more. A version is old if it meets all conditions that are
        given by `older_than`, `retain_versions` and `versions`.

        Parameters
        ----------
        older_than
            The version was committed at least this long ago. Two weeks if none of the three conditions is given.
        retain_versions
            The version is not one of the n newest versions.
        delete_unverified
            True to remove files that no version refers to at any age. Otherwise they are kept for seven days, since
            they may belong to a running commit. Use it only while nobody writes.
        error_if_tagged_old_versions
            True to raise an error if an old version has a tag, False to keep the version silently.
        delete_rate_limit
            Maximum number of files to remove per second.
        versions
            The version is one of these.
        delete_concurrency
            Number of files to remove at the same time.
        progress
            True for a bar (tqdm), or a function of the numbers of files removed and in all, manifests included.
        run_shares
            Function that does shares of the work: listing folders and removing data files, deletion files, files of
            indices and transactions. It gets functions without parameters, which can be pickled, may call them in
            other processes, and returns their results in order. Versions are read and removed here in any case; so are
            all files if there is a `delete_rate_limit`.

        Returns
        -------
        CleanupStats
            Counts of the removed versions and files.

        Raises
        ------
        InvalidInputError
            An old version has a tag, or an argument is out of range.
        CorruptFileError, UnsupportedError
            A version, tag or branch cannot be read, so the files that it needs are unknown. Nothing is removed then.
        """
        from lance_dataset.table.cleanup.removal import CleanupPolicy, cleanup

        policy = CleanupPolicy.of(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
            delete_rate_limit=delete_rate_limit,
            delete_concurrency=delete_concurrency,
        )
        snapshot = self.snapshot
        with reported_progress(progress, lambda: None, "cleanup", "file") as told:
            return _stats(cleanup(snapshot.store, snapshot.root, snapshot.manifest, policy, told, run_shares))

    def explain_cleanup_old_versions(
        self,
        older_than: dt.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool | None = False,
        error_if_tagged_old_versions: bool | None = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupExplanation:
        """Explain what `cleanup_old_versions` would remove, without removing it.

        Parameters
        ----------
        older_than, retain_versions, delete_unverified, error_if_tagged_old_versions, versions
            As for `cleanup_old_versions`.
        delete_rate_limit
            Ignored.
        include_files
            True to list the files, `max_files` of them at most.

        Raises
        ------
        InvalidInputError, CorruptFileError, UnsupportedError
            As for `cleanup_old_versions`.
        """
        from lance_dataset.table.cleanup.plan import CleanupPolicy, plan_cleanup
        from lance_dataset.table.cleanup.removal import planned_removal

        limit = checked_integer("max_files", max_files)
        if limit == 0:
            raise InvalidInputError("max_files must be positive")
        policy = CleanupPolicy.of(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        plan = plan_cleanup(self.snapshot.store, self.snapshot.root, self.snapshot.manifest, policy)
        removed, files = planned_removal(plan, self.snapshot.root)
        truncated = include_files and len(files) > limit
        return CleanupExplanation(
            read_version=plan.read_version,
            stats=_stats(removed),
            candidate_files=[
                CleanupCandidateFile(file.path.lstrip("/"), file.kind.value, file.unverified, file.size)
                for file in (files[:limit] if include_files else ())
            ],
            candidate_files_truncated=truncated,
            candidate_file_limit=limit,
            referenced_branches=[
                CleanupReferencedBranch(branch.name, branch.referenced_version) for branch in plan.branches.referenced
            ],
            warnings=[f"candidate_files truncated to {limit} entries"] if truncated else [],
        )

    def maintain(
        self,
        *,
        dry_run: bool = False,
        wait: dt.timedelta | None = None,
        runner: MaintenanceRunner | None = None,
        progress: ProgressOption = None,
    ) -> MaintenanceReport:
        """Compact, refresh indices and clean up if the policy in the config says so; move to the newest version.

        The newest version of the branch is maintained, also if this handle shows an older one. Only one process does so
        at a time: it has a lease, a small file in the folder ``_maintenance`` of the dataset or branch. If the process
        is killed, its lease expires after ``maintenance.lease``. A step that conflicts with other writers is tried
        again, and then reported. Tagged versions stay, as does what the automatic cleanup would keep.

        The keys of the policy are set with `update_config`; see `MaintenancePolicy` for their meaning and defaults:
        ``maintenance.compact.enabled``, ``min_fragments``, ``deleted_share``; ``maintenance.indices.enabled``,
        ``uncovered_rows``, ``uncovered_share``; ``maintenance.cleanup.enabled``, ``older_than``, ``retain_versions``,
        ``min_versions``; ``maintenance.lease``. Compaction has the options ``lance.compaction.*`` of the config.

        Parameters
        ----------
        dry_run
            True to change nothing, and only report what is due now. Steps may make others due.
        wait
            How long to wait if another process has the lease. By default the report says who has it.
        runner
            Does the compaction and refreshes the indices instead of this process.
        progress
            True for a bar (tqdm), or a function of the numbers of units done and in all: rows rewritten, rows indexed
            and files removed. The whole number grows with each step. If it raises, the steps before stay done.

        Returns
        -------
        MaintenanceReport
            What was done or is due, and why; ``str`` makes a text, ``to_dict`` and ``to_json`` make JSON of it.

        Raises
        ------
        InvalidInputError
            The policy has an unknown key or an invalid value, or `wait` is negative.
        TypeError
            An argument has the wrong type.
        CorruptFileError, StorageError
            A file cannot be read or written. The steps before stay done.
        """
        from lance_dataset.api.maintenance import RunnerWork
        from lance_dataset.changes.maintaining.running import maintain

        check_switch("dry_run", dry_run)
        if wait is not None:
            check_duration("wait", wait)
        with reported_progress(progress, lambda: None, "maintenance", "unit") as told:
            return maintain(
                self.snapshot,
                dry_run=dry_run,
                wait=wait,
                worker=None if runner is None else RunnerWork(runner, type(self)),
                progress=told,
                show=self.show,
            )

    def all_files(self) -> pa.RecordBatchReader:
        """List all files below the location of the dataset. Files of base paths are not included.

        Returns
        -------
        pyarrow.RecordBatchReader
            Columns ``base_uri``, ``path`` (below it), ``size_bytes``, ``last_modified``.
        """
        from lance_dataset.read.file_lists import all_files

        return all_files(self.snapshot.location)

    def tracked_files(
        self, *, min_version: int | None = None, progress: Progress | None = None
    ) -> pa.RecordBatchReader:
        """List all files that versions of the dataset refer to, once for each of these versions.

        Parameters
        ----------
        min_version
            Lowest version to include.
        progress
            Function that is called after each version with the number of versions done and the total number.

        Returns
        -------
        pyarrow.RecordBatchReader
            Columns ``version``, ``base_uri``, ``path`` (below it), ``type``: ``manifest``, ``data file``, ``deletion
            file``, ``transaction file`` or ``index file``.
        """
        from lance_dataset.read.file_lists import tracked_files

        least = None if min_version is None else checked_integer("min_version", min_version)
        return tracked_files(self.snapshot.location, least, progress)


def _stats(removed: Removed) -> CleanupStats:
    return CleanupStats(**{field.name: getattr(removed, field.name) for field in fields(removed)})
