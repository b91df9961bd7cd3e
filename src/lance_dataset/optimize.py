"""Maintenance of a dataset: compaction, by it the upgrade to a later file version, and the removal of old versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lance_dataset.changes.compaction.running import compact
from lance_dataset.changes.compaction.settings import CompactionSettings
from lance_dataset.compaction import (
    Compaction,
    CompactionMetrics,
    CompactionOptions,
    CompactionPlan,
    CompactionTask,
    RewriteResult,
)
from lance_dataset.settings import AutoCleanupConfig, auto_cleanup_keys, auto_cleanup_settings

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "DatasetOptimizer",
    "RewriteResult",
]


class DatasetOptimizer:
    """Maintenance of a dataset. Get it with `LanceDataset.optimize`."""

    def __init__(self, dataset: LanceDataset) -> None:
        self._dataset = dataset

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig, **kwargs: Any) -> None:
        """Make the dataset remove old versions by itself, after every so many commits.

        Parameters
        ----------
        auto_cleanup_config
            ``interval`` in versions and ``older_than_seconds``, the age of the versions that go.

        Raises
        ------
        InvalidInputError, TypeError
            One of the two is missing or has a value it cannot have.
        """
        _no_options("enable_auto_cleanup", kwargs)
        self._dataset.update_config(dict(auto_cleanup_settings(auto_cleanup_config, complete=True)))

    def disable_auto_cleanup(self, **kwargs: Any) -> None:
        """Stop removing old versions by itself."""
        _no_options("disable_auto_cleanup", kwargs)
        self._dataset.delete_config_keys(auto_cleanup_keys())

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
        compaction_mode: str | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: Sequence[int] | None = None,
        data_storage_version: str | None = None,
    ) -> CompactionMetrics:
        """Join small neighbouring fragments and drop deleted rows, in one commit; the dataset moves to the new version.

        Fragments are read and written anew one group after another, in bounded memory. The order of rows changes only
        in that new fragments come last. Row ids and row versions stay on datasets with stable row ids. An option that
        is left out is taken from the dataset's config (``lance.compaction.`` and its name), if it is there.

        Parameters
        ----------
        target_rows_per_fragment
            Fragments with fewer rows are joined with their neighbours until they have that many, 1,048,576 by default.
        max_rows_per_group
            Rows of the batches of legacy (0.1) files, 1024 by default.
        max_bytes_per_file
            When to start a new file before it has its rows.
        materialize_deletions, materialize_deletions_threshold
            Whether, and from which fraction of deleted rows on (0.1 by default), a fragment is written anew without
            them even if it has no neighbour to join.
        batch_size
            Rows to read at a time.
        max_source_fragments, max_source_rows, max_source_bytes
            Stop before more than that is read; the rest is left to another run.
        excluded_fragment_ids
            Fragments to leave alone, and not to join others across.
        data_storage_version
            File version of the new fragments; by default that of the dataset. Within 2.x, other fragments and the
            version of the dataset stay as they are. From 0.1 to one of 2.x all fragments are written anew, and it
            becomes the version of the dataset.
        compaction_mode
            ``reencode`` (the default) reads rows and writes them as any other. ``try_binary_copy`` copies pages as they
            are where no row of a task is deleted and its files hold all columns, none of blobs, in the version to be
            written; ``force_binary_copy`` refuses where that is not so. Copying takes a fraction of the time, but
            pages stay as small as they were: scans and row access of many small pages are slower. What is copied is not
            decoded, so damage in a page is copied too.
        binary_copy_read_batch_bytes
            Most bytes to hold while pages are copied.
        defer_index_remap
            Leave indices that hold row addresses as they are, and note in an index of the table's own (the
            fragment-reuse index) where rows went. Without it such indices are made anew, with the addresses that rows
            have then.
        num_threads
            How many tasks, each of which makes about one new fragment, to work on at a time; by default one, as
            reading and encoding use all processors as it is.

        Returns
        -------
        CompactionMetrics
            All zero, and no commit, if nothing needs to be done.

        Raises
        ------
        UnsupportedError
            An index that this release does not know covers a fragment that would be written anew, and
            `defer_index_remap` is not set;
            or it is set on a dataset with stable row ids; the file version cannot hold the data; or pages cannot be
            copied and must be.
        CommitConflictError
            Another writer changed the same fragments or their columns meanwhile; nothing is changed then.
        InvalidInputError
            An option is out of range.
        """
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        settings = CompactionSettings.of(given, self._dataset.config())
        return CompactionMetrics._of(compact(self._dataset, settings))


def _no_options(call: str, options: Mapping[str, Any]) -> None:
    if options:
        raise TypeError(f"{call} got unknown options: {', '.join(options)}; other settings are set with update_config")
