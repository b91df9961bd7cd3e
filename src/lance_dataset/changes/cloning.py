"""Branches and clones: tables that begin with a version of another table."""

from __future__ import annotations

from lance_dataset.read.location import TableLocation
from lance_dataset.read.opening import find_reference, open_place
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.references import clone
from lance_dataset.table.references.branching import create_branch
from lance_dataset.table.references.catalog import Place, Reference, place_of
from lance_dataset.table.references.names import main_root
from lance_dataset.threads.progress import Progress

__all__ = ["deep_clone", "make_branch", "shallow_clone"]


def make_branch(snapshot: Snapshot, branch: str, reference: Reference | None) -> Snapshot:
    """Create a branch that begins with a version; see `LanceDataset.create_branch`."""
    made = create_branch(main_root(snapshot.manifest, snapshot.root), branch, _source(snapshot, reference))
    return open_place(snapshot, Place(branch, made.version), made)


def shallow_clone(snapshot: Snapshot, target: TableLocation, reference: Reference | None) -> Snapshot:
    """Create a table that begins with a version of another table and uses its files.

    Parameters
    ----------
    snapshot
        Open version of the table to clone.
    target
        Location of the clone.
    reference
        Version to clone; None for the snapshot itself.
    """
    return Snapshot.of(target, clone.shallow_clone(_source(snapshot, reference), target.store, target.root))


def deep_clone(
    snapshot: Snapshot, target: TableLocation, reference: Reference | None, progress: Progress | None = None
) -> Snapshot:
    """Create a table with copies of the files of a version of another one, and tell of each file.

    Other parameters are those of `shallow_clone`.
    """
    return Snapshot.of(target, clone.deep_clone(_source(snapshot, reference), target.store, target.root, progress))


def _source(snapshot: Snapshot, reference: Reference | None) -> clone.CloneSource:
    place = find_reference(snapshot, reference)
    is_shown = place == place_of(snapshot.manifest, snapshot.root)
    found = snapshot if is_shown else open_place(snapshot, place)
    manifest = found.manifest
    return clone.CloneSource(found.store, found.root, manifest, place.branch, found.location.locator(manifest))
