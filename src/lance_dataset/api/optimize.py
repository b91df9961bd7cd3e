"""Maintenance of a dataset: compaction, upgrade to a later file version, and automatic cleanup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lance_dataset.api.compaction import Compaction, CompactionMetrics, CompactionMode, CompactionOptions
from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.goals import StorageGoal
from lance_dataset.read.shown import Shown
from lance_dataset.records.settings import AutoCleanupConfig, auto_cleanup_keys, auto_cleanup_settings

__all__ = ["DatasetOptimizer"]


class DatasetOptimizer:
    """Maintenance of a dataset. Get it with `LanceDataset.optimize`."""

    def __init__(self, dataset: Shown) -> None:
        self._dataset = dataset

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig, **kwargs: Any) -> None:
        """Remove old versions automatically after every n commits.

        Parameters
        ----------
        auto_cleanup_config
            ``interval``, the number of commits between cleanups, and ``older_than_seconds``, the minimum age of the
            versions to remove.

        Raises
        ------
        InvalidInputError, TypeError
            One of the two is missing or has an invalid value.
        """
        from lance_dataset.changes.settings import update_config

        _no_options("enable_auto_cleanup", kwargs)
        values = auto_cleanup_settings(auto_cleanup_config, complete=True)
        self._dataset.show(update_config(self._dataset.snapshot, values))

    def disable_auto_cleanup(self, **kwargs: Any) -> None:
        """Stop removing old versions automatically."""
        from lance_dataset.changes.settings import update_config

        _no_options("disable_auto_cleanup", kwargs)
        self._dataset.show(update_config(self._dataset.snapshot, dict.fromkeys(auto_cleanup_keys())))

    def optimize_indices(
        self,
        *,
        num_indices_to_merge: int | None = None,
        index_names: Sequence[str] | None = None,
        retrain: bool = False,
        memory_limit: int | None = None,
        progress: ProgressOption = None,
        **kwargs: Any,
    ) -> None:
        """Add rows that have no index yet to the indices, in one commit, and move the dataset to the new version.

        Parameters
        ----------
        num_indices_to_merge
            Number of newest segments of each index to merge with the new rows; by default 1, and 0 for indices of
            vectors. With 0 the new rows become a segment of their own.
        index_names
            Indices to optimize; None for all. Names of no index are ignored.
        retrain
            True to merge all segments of indices of vectors, and to train centroids and codes anew. Other indices
            have no models.
        memory_limit
            Maximum number of bytes to sort with, approximately; None for a quarter of the memory of the machine.
        progress
            True for a bar (tqdm), or a function of the numbers of rows read and in all.
        **kwargs
            Ignored, as in the reference.

        Raises
        ------
        ValueError
            `index_names` is not a list of names.
        OverflowError
            A number is negative.
        UnsupportedError
            An index has rows to add, but this release does not build indices of its kind.
        CommitConflictError
            Other writers changed the rows or the indices, and the retries ran out.
        """
        from lance_dataset.changes.indexing.optimize_indices import optimize_indices

        if index_names is not None and (
            not isinstance(index_names, list | tuple | set) or not all(isinstance(name, str) for name in index_names)
        ):
            raise InvalidInputError(f"index_names must be a list of names, not {index_names!r}")
        if num_indices_to_merge is not None:
            num_indices_to_merge = checked_integer("num_indices_to_merge", num_indices_to_merge, bits=63)
        if memory_limit is not None:
            memory_limit = checked_integer("memory_limit", memory_limit, bits=63)
        with reported_progress(progress, lambda: None, "indices") as told:
            self._dataset.show(
                optimize_indices(
                    self._dataset.snapshot,
                    names=index_names,
                    num_merged=num_indices_to_merge,
                    retrain=bool(retrain),
                    memory_limit=memory_limit,
                    progress=told,
                )
            )

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: CompactionMode | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: Sequence[int] | None = None,
        data_storage_version: str | None = None,
        progress: ProgressOption = None,
        optimize: StorageGoal | None = None,
    ) -> CompactionMetrics:
        """Join small adjacent fragments and rewrite those with many deleted rows; move the handle to the new version.

        All is one commit. Deleted rows are dropped only from fragments that are rewritten: those that are joined with a
        neighbour, and those with a larger fraction of deleted rows than `materialize_deletions_threshold`. In all
        others they stay, and older versions keep the old files until a cleanup removes them. So compaction does not
        erase rows; use `LanceDataset.purge` for that.

        Groups of fragments are rewritten one after another, in bounded memory. New fragments come last; otherwise the
        order of rows stays. Datasets with stable row ids keep their row ids and row versions. An option that is not
        given is taken from the dataset's config (``lance.compaction.`` and its name) if it is set there.

        Parameters
        ----------
        target_rows_per_fragment
            Number of rows of the new fragments, 1,048,576 by default. Fragments with fewer rows are joined with
            adjacent ones until they have that many.
        max_rows_per_group
            Number of rows in the batches of legacy (0.1) files, 1024 by default.
        max_bytes_per_file
            Size at which a new file is started, even if the file has fewer rows than `target_rows_per_fragment`.
        materialize_deletions, materialize_deletions_threshold
            Rewrite a fragment without its deleted rows, even if it has no neighbour to join, when the fraction of
            deleted rows exceeds the threshold (0.1 by default).
        batch_size
            Number of rows to read at a time.
        max_source_fragments, max_source_rows, max_source_bytes
            Limits of the fragments, rows and bytes that are read. The rest is left to another run.
        excluded_fragment_ids
            Fragments to leave unchanged. Fragments on both sides of an excluded one are not joined.
        data_storage_version
            File version of the new fragments. The default is that of the dataset. Between 2.x versions, other fragments
            and the version of the dataset stay unchanged. From 0.1 to 2.x, all fragments are rewritten, and the dataset
            changes to the new version.
        compaction_mode
            ``reencode`` (the default) decodes the rows and encodes them again. ``try_binary_copy`` copies encoded pages
            if a task has no deleted rows and its files hold all columns, no blob columns, in the version to write.
            ``force_binary_copy`` raises an error if that is not so. Copying takes a fraction of the time, but pages
            stay as small as they were, and many small pages make scans and row access slower. Copied pages are not
            decoded, so a damaged page is copied as it is.
        binary_copy_read_batch_bytes
            Maximum number of bytes to hold in memory while pages are copied.
        defer_index_remap
            Leave indices that hold row addresses unchanged, and record the moves of rows in a system index of the table
            (the fragment-reuse index). Otherwise such indices are rewritten with the new addresses.
        optimize
            What pages of new fragments are encoded for, see `lance_dataset.write_dataset`.
        num_threads
            Number of tasks to run at the same time. Each task makes about one new fragment. The default is one, since
            reading and encoding already use all processors.
        progress
            True for a bar (tqdm), or a function of the numbers of rows done and in all. It is told of each task.

        Returns
        -------
        CompactionMetrics
            All counts are zero if there is nothing to do. Nothing is committed then.

        Raises
        ------
        UnsupportedError
            An index that this release does not know covers a fragment to rewrite, and `defer_index_remap` is not set;
            `defer_index_remap` is set on a dataset with stable row ids; the file version cannot hold the data; or pages
            must be copied and cannot be.
        CommitConflictError
            Another writer changed the same fragments or their columns. Nothing is changed then.
        InvalidInputError
            An option is out of range.
        """
        options: CompactionOptions = {
            "target_rows_per_fragment": target_rows_per_fragment,
            "max_rows_per_group": max_rows_per_group,
            "max_bytes_per_file": max_bytes_per_file,
            "materialize_deletions": materialize_deletions,
            "materialize_deletions_threshold": materialize_deletions_threshold,
            "defer_index_remap": defer_index_remap,
            "num_threads": num_threads,
            "batch_size": batch_size,
            "compaction_mode": compaction_mode,
            "binary_copy_read_batch_bytes": binary_copy_read_batch_bytes,
            "max_source_fragments": max_source_fragments,
            "max_source_rows": max_source_rows,
            "max_source_bytes": max_source_bytes,
            "excluded_fragment_ids": excluded_fragment_ids,
            "data_storage_version": data_storage_version,
            "optimize": optimize,
        }
        return Compaction.execute(self._dataset, options, progress=progress)


def _no_options(call: str, options: Mapping[str, Any]) -> None:
    if options:
        raise TypeError(f"{call} got unknown options: {', '.join(options)}; other settings are set with update_config")
