"""Taking away the deletion files of a change that was not committed, or that was committed with others."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from lance_dataset.errors import LanceError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.versions import list_versions, read_named

__all__ = ["fragments_in", "remove_superseded", "remove_uncommitted"]

_log = logging.getLogger(__name__)


def fragments_in(manifest: Manifest, written: Iterable[Fragment]) -> list[Fragment]:
    """The fragments of a version with the ids of those that were written."""
    found = (manifest.fragment(fragment_id) for fragment_id in {fragment.id for fragment in written})
    return [fragment for fragment in found if fragment is not None]


def remove_superseded(store: ObjectStore, root: str, written: Iterable[Fragment], kept: Iterable[Fragment]) -> None:
    """Remove the deletion files of some fragments that others do not refer to; failures only leave files behind.

    Parameters
    ----------
    store, root
        The table.
    written
        Fragments whose deletion files the caller wrote, so that nobody else can come to refer to them.
    kept
        Fragments of the versions that may refer to the files.
    """
    referenced = {_key(fragment) for fragment in kept}
    locator = FileLocator(store, root)
    for fragment in written:
        if fragment.deletion_file is None or _key(fragment) in referenced:
            continue
        _, path = locator.deletion_file(fragment.id, fragment.deletion_file)
        try:
            store.delete(path)
        except OSError as error:
            _log.debug("deletion file %s not removed: %s", path, error)


def remove_uncommitted(store: ObjectStore, root: str, written: Sequence[Fragment], since: int) -> None:
    """Remove the deletion files of a commit that failed.

    A commit can fail (an interrupt, a disk error) after its manifest is in place. Its files must stay then, and also
    where that cannot be found out; files that nobody refers to do no harm.

    Parameters
    ----------
    store, root
        The table.
    written
        Fragments whose deletion files the caller wrote.
    since
        Version the files were computed against; only later ones can refer to them.
    """
    if not written:
        return
    try:
        newer = [name for name in list_versions(store, root) if name.version > since]
        kept = [fragment for name in newer for fragment in fragments_in(read_named(store, root, name), written)]
    except (LanceError, OSError) as error:
        _log.debug("deletion files of a failed commit stay, %s cannot be read: %s", store.uri(root), error)
        return
    remove_superseded(store, root, written, kept)


def _key(fragment: Fragment) -> tuple[object, ...]:
    """What the name of a deletion file is made of; counts are left out, they may be corrected later."""
    file = fragment.deletion_file
    return (fragment.id,) if file is None else (fragment.id, file.file_type, file.read_version, file.id)
