"""Deletion of the rows that a predicate matches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.fragments.masks import mask_rows, write_masks
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.expr.compiled import Filter, compile_filter
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import Projection, full_schema
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.resolving import indices_for_scans
from lance_dataset.scan.scan import ScanRequest, matching_by_fragment, matching_rows
from lance_dataset.table.commit.leftovers import ChangeFiles, fragments_in, remove_superseded
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.operations import Delete

__all__ = ["delete_matches", "delete_rows", "fragment_without_offsets", "fragment_without_rows"]


def delete_rows(
    snapshot: Snapshot,
    predicate: str | pc.Expression,
    conflict_retries: int | None,
    retry_timeout: dt.timedelta | None,
    metrics: Callable[[], ScanMetrics | None] = lambda: None,
) -> tuple[Snapshot, int]:
    """Delete the rows that a predicate matches, in one commit.

    Parameters
    ----------
    snapshot
        Version to change.
    predicate
        SQL text or a pyarrow expression. Rows for which it is null are kept.
    conflict_retries, retry_timeout
        See `repeated_on_conflict`.
    metrics
        Makes the metrics of the scan of each attempt.

    Returns
    -------
    snapshot : Snapshot
        The new version.
    num_rows : int
        Number of deleted rows.

    Raises
    ------
    FilterError, FieldNotFoundError
        The predicate does not fit the schema.
    TypeError
        The predicate is None.
    CommitConflictError
        Other writers changed the same rows, and the retries ran out.
    """
    return repeated_on_conflict(
        snapshot,
        lambda latest: _delete(latest, _compiled(latest, predicate), metrics()),
        conflict_retries,
        retry_timeout,
    )


def fragment_without_rows(
    snapshot: Snapshot, fragment: FragmentReader, predicate: str | pc.Expression
) -> Fragment | None:
    """Delete the rows of one fragment that a predicate matches, without a commit.

    Returns
    -------
    Fragment or None
        Metadata with the new deletion file; None if no row is left.
    """
    bound = _compiled(snapshot, predicate)
    return fragment_without_offsets(snapshot, fragment, matching_rows(fragment, _request(bound, snapshot)))


def fragment_without_offsets(
    snapshot: Snapshot, fragment: FragmentReader, offsets: NDArray[np.int64]
) -> Fragment | None:
    """Delete live rows of one fragment by physical offset, without a commit.

    Returns
    -------
    Fragment or None
        Metadata with the new deletion file; None if no row is left.
    """
    if not len(offsets):
        return fragment.fragment
    return mask_rows(snapshot.store, snapshot.root, fragment, offsets, snapshot.version)


def _compiled(snapshot: Snapshot, predicate: str | pc.Expression) -> Filter:
    bound = compile_filter(predicate, full_schema(snapshot.scanned_schema))
    if bound is None:
        raise TypeError("delete needs a predicate; 'true' deletes all rows")
    return bound


def _delete(snapshot: Snapshot, predicate: Filter, metrics: ScanMetrics | None) -> tuple[Snapshot, int]:
    manifest = snapshot.manifest
    check_writable(manifest.writer_flags, manifest.path)
    # All rows are found first: reading can fail, and deletion files must not be written in that case.
    hits = matching_by_fragment(snapshot.reader, replace(_request(predicate, snapshot), metrics=metrics))
    return delete_matches(snapshot, hits, str(predicate))


def delete_matches(
    snapshot: Snapshot, hits: Iterable[tuple[FragmentReader, NDArray[np.int64]]], predicate: str
) -> tuple[Snapshot, int]:
    """Delete live rows by physical offset, in one commit.

    Parameters
    ----------
    snapshot
        Version to change.
    hits
        Fragments, and the ascending physical offsets of the live rows to delete.
    predicate
        Text that the transaction records, for information.

    Returns
    -------
    snapshot : Snapshot
        The new version.
    num_rows : int
        Number of deleted rows.
    """
    store, root = snapshot.store, snapshot.root
    masks = write_masks(store, root, hits, snapshot.version)
    operation = Delete(masks.updated, masks.removed, predicate)
    with ChangeFiles(store, root, masked=masks.updated).taken_back(snapshot.version):
        made = commit_change(snapshot, operation, affected_rows=masks.affected_rows)
    remove_superseded(store, root, masks.updated, fragments_in(made.manifest, masks.updated))
    return made, masks.num_rows


def _request(predicate: Filter, snapshot: Snapshot) -> ScanRequest:
    schema = snapshot.scanned_schema
    nothing = Projection((), full_schema(schema))
    return ScanRequest(schema, nothing, filter=predicate, indices=indices_for_scans(snapshot))
