"""Functions that open a version by number, by tag, by branch and version, or by time."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_dataset.errors import InvalidInputError, LanceError
from lance_dataset.events import emit
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.uris import has_scheme
from lance_dataset.read.location import TableLocation
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.versions import latest_version, read_newest, version_as_of

if TYPE_CHECKING:
    from lance_dataset.table.references.catalog import Place, Reference

__all__ = ["check_out", "find_reference", "open_as_of", "open_place", "open_snapshot", "uri_of_branch"]


def open_snapshot(location: TableLocation, reference: Reference | None = None) -> Snapshot:
    """Open a version of a table.

    Parameters
    ----------
    location
        Location of the table, or of a branch of it.
    reference
        Version number, tag, or pair of branch and version; None for the newest version.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        The table, tag, branch or version does not exist.
    """
    told: dict[str, object] = {"event": "loading", "uri": location.store.uri(location.root), "target_ref": reference}
    try:
        snapshot = _open(location, reference)
    except (LanceError, OSError):
        emit("dataset_events", **told, status="error")
        raise
    emit("dataset_events", **told, version=snapshot.version, status="success")
    return snapshot


def _open(location: TableLocation, reference: Reference | None) -> Snapshot:
    if isinstance(reference, str | tuple):
        return _open_reference(location, reference)
    return Snapshot.of(location, location.read_manifest(reference))


def open_as_of(location: TableLocation, moment: dt.datetime) -> Snapshot:
    """Open the newest version that was committed before a time. Raise VersionNotFoundError if there is none."""
    return Snapshot.of(location, version_as_of(location.store, location.root, moment))


def _open_reference(location: TableLocation, reference: Reference) -> Snapshot:
    from lance_dataset.table.references.catalog import Place, find_place, place_of
    from lance_dataset.table.references.names import TREE_FOLDER, branch_root, main_root

    store, root = location.store, location.root
    main, here = root, Place(None, 0)
    if f"/{TREE_FOLDER}/" in root:  # may be a branch; its manifest tells
        latest = read_newest(store, root)
        main, here = main_root(latest, root), place_of(latest, root)
    try:
        place = find_place(store, main, reference, here)
    except (InvalidInputError, FileNotFoundError):
        latest_version(store, root)  # raises if the table itself does not exist
        raise
    uri = uri_of_branch(store, main, location.uri, here.branch, place.branch)
    there = replace(location, uri=uri, root=branch_root(main, place.branch))
    return Snapshot.of(there, there.read_manifest(place.version))


def uri_of_branch(store: ObjectStore, main: str, uri: str, current: str | None, branch: str | None) -> str:
    """Return the location of a branch, in the same notation as the location of another branch of the table.

    Parameters
    ----------
    store, main
        Store of the table, and root of its main branch.
    uri, current
        Location of a branch as the user gave it, and the name of that branch; None for the main branch.
    branch
        Name of the requested branch; None for the main branch.
    """
    from lance_dataset.table.references.names import TREE_FOLDER, branch_root

    if branch == current:
        return uri
    location, mark, query = uri.partition("?") if has_scheme(uri) else (uri, "", "")
    location = location.rstrip("/") or location
    ending = f"/{TREE_FOLDER}/{current}"
    if current is not None:
        location = location[: -len(ending)] if location.endswith(ending) else store.uri(main)
    return f"{branch_root(location, branch)}{mark}{query}"


def check_out(snapshot: Snapshot, reference: Reference) -> Snapshot:
    """Open another version, on the branch of the snapshot unless the reference names another branch.

    Raises
    ------
    VersionNotFoundError
        The version, tag or branch does not exist.
    """
    return open_place(snapshot, find_reference(snapshot, reference))


def find_reference(snapshot: Snapshot, reference: Reference | None) -> Place:
    """Return the branch and version that a reference refers to. None refers to the snapshot itself."""
    from lance_dataset.table.references.catalog import find_place, place_of
    from lance_dataset.table.references.names import main_root

    manifest, root = snapshot.manifest, snapshot.root
    return find_place(snapshot.store, main_root(manifest, root), reference, place_of(manifest, root))


def open_place(snapshot: Snapshot, place: Place, manifest: Manifest | None = None) -> Snapshot:
    """Open a version of a branch of the same dataset. If `manifest` is given, it is not read again."""
    from lance_dataset.table.references.names import branch_of, branch_root, main_root

    known, store = snapshot.manifest, snapshot.store
    main = main_root(known, snapshot.root)
    uri = uri_of_branch(store, main, snapshot.uri, branch_of(known, snapshot.root), place.branch)
    there = replace(snapshot.location, uri=uri, root=branch_root(main, place.branch))
    return Snapshot.of(there, there.read_manifest(place.version) if manifest is None else manifest)
