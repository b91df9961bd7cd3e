"""Which rows a delete hits, and the fragment metadata that masks them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.blob_fields import described_schema
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.threads import for_each
from lance_dataset.query.expr import Filter
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.projection import Projection, full_schema
from lance_dataset.query.scan import ScanRequest, matching_by_fragment, matching_rows
from lance_dataset.query.table_reader import TableReader
from lance_dataset.schema import Schema
from lance_dataset.table.commit.leftovers import ChangeFiles, fragments_in, remove_superseded
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.deletions import united, write_deletions
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Delete
from lance_dataset.table.transaction import Transaction

__all__ = ["DeletePlan", "Masks", "commit_delete", "delete_offsets", "delete_where", "plan_delete", "write_masks"]


@dataclass(frozen=True)
class Masks:
    """Fragments after some of their rows were masked; the deletion files are written.

    Attributes
    ----------
    updated
        Fragments with their new deletion file.
    removed
        Ids of fragments without live rows, which get no file.
    affected_rows
        Newly masked physical offsets by fragment id.
    """

    updated: tuple[Fragment, ...]
    removed: tuple[int, ...]
    affected_rows: dict[int, NDArray[np.uint32]]

    @property
    def num_rows(self) -> int:
        """How many rows were masked."""
        return sum(len(rows) for rows in self.affected_rows.values())


@dataclass(frozen=True)
class DeletePlan:
    """A delete computed against one version; its deletion files are written.

    Attributes
    ----------
    operation
        What to commit.
    affected_rows
        Newly deleted physical offsets by fragment id.
    num_rows
        How many rows that is.
    """

    operation: Delete
    affected_rows: dict[int, NDArray[np.uint32]]
    num_rows: int


def plan_delete(store: ObjectStore, root: str, reader: TableReader, predicate: Filter) -> DeletePlan:
    """Find the live rows a predicate holds for, and write new deletion files for their fragments."""
    check_writable(reader.manifest.writer_flags, reader.manifest.path)
    schema, version = described_schema(reader.manifest.schema), reader.manifest.version
    # First find all rows: reading can fail, and no deletion file shall be there then.
    hits = matching_by_fragment(reader, _request(predicate, schema))
    masks = write_masks(store, root, hits, version)
    operation = Delete(masks.updated, masks.removed, str(predicate))
    return DeletePlan(operation, masks.affected_rows, masks.num_rows)


def write_masks(
    store: ObjectStore, root: str, hits: Iterable[tuple[FragmentReader, NDArray[np.int64]]], version: int
) -> Masks:
    """Write new deletion files for rows to be masked; if anything fails, they are removed again.

    Parameters
    ----------
    store, root
        The table.
    hits
        Fragments, and the physical offsets of the live rows to mask, ascending; without any, a fragment is left alone.
    version
        The version that the fragments are of.
    """
    hit = {fragment.fragment.id: (fragment, rows) for fragment, rows in hits if len(rows)}
    written: dict[int, Fragment | None] = {}

    def write(fragment_id: int) -> None:
        written[fragment_id] = delete_offsets(store, root, *hit[fragment_id], version)

    try:
        for_each(write, list(hit))
    except BaseException:
        remove_superseded(store, root, filter(None, written.values()), kept=())
        raise
    return Masks(
        tuple(changed for changed in map(written.get, hit) if changed is not None),
        tuple(fragment_id for fragment_id in hit if written[fragment_id] is None),
        {fragment_id: rows.astype(np.uint32) for fragment_id, (_, rows) in hit.items()},
    )


def commit_delete(store: ObjectStore, root: str, base: Manifest, plan: DeletePlan) -> Manifest:
    """Commit a delete computed against `base`; deletion files that the new version does not use are removed.

    Raises
    ------
    CommitConflictError
        Others deleted some of the same rows, or changed the table otherwise; the files of the plan are gone.
    """
    written = plan.operation.updated_fragments
    change = Transaction(base.version, plan.operation)
    with ChangeFiles(store, root, masked=written).taken_back(base.version):
        made = commit_transaction(store, root, change, read_manifest=base, affected_rows=plan.affected_rows)
    remove_superseded(store, root, written, fragments_in(made, written))
    return made


def delete_where(fragment: FragmentReader, predicate: Filter, schema: Schema) -> NDArray[np.int64]:
    """Physical offsets of the live rows a predicate holds for, ascending."""
    return matching_rows(fragment, _request(predicate, schema))


def _request(predicate: Filter, schema: Schema) -> ScanRequest:
    return ScanRequest(schema, Projection((), full_schema(schema)), filter=predicate)


def delete_offsets(
    store: ObjectStore, root: str, fragment: FragmentReader, rows: NDArray[np.int64], version: int
) -> Fragment | None:
    """Fragment metadata with more rows deleted, its deletion file written; None if no row is left."""
    offsets = united(fragment.deletions, rows)
    if len(offsets) == fragment.physical_rows:
        return None
    file = write_deletions(store, root, fragment.fragment.id, version, offsets)
    return replace(fragment.fragment, deletion_file=file, physical_rows=fragment.physical_rows)
