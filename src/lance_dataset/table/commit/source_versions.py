"""Versions whose files a later version takes over without following them directly: restored ones, and detached ones."""

from __future__ import annotations

from lance_dataset.errors import CommitConflictError, DatasetNotFoundError, VersionNotFoundError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.commit.protocol import commit_protocol
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import is_detached
from lance_dataset.table.versions import find_latest, locate_version

__all__ = ["check_source_kept"]


def check_source_kept(store: ObjectStore, root: str, source: int, made: Manifest) -> None:
    """Check, after a version was made of the files of an old one, that no cleanup removed the old one meanwhile.

    A cleanup removes manifests first, then looks for new versions, then removes files: while the old manifest is there,
    the cleanup is going to see the new version. Afterwards it may have missed it, and the new version is taken back.

    Parameters
    ----------
    store, root
        The table.
    source
        The old version.
    made
        The new version, which is published.

    Raises
    ------
    CommitConflictError
        The old version is gone. `retryable` tells that the new one is gone too; otherwise others have built on it.
    """
    try:
        locate_version(store, root, source)
        return
    except (VersionNotFoundError, DatasetNotFoundError):
        pass
    place = f"version {source} of {store.uri(root)} was removed by a cleanup at the same moment"
    if not is_detached(made.version):
        latest = find_latest(store, root)
        if latest is None or latest.version != made.version:
            raise CommitConflictError(
                f"{place} as version {made.version} was made of its files, and others have built on that already: "
                "check that all rows can be read, and restore another version if not",
                retryable=False,
            )
    commit_protocol(store).forget(store, root, [made.version])
    store.delete(made.path)
    raise CommitConflictError(f"{place}, so nothing was committed; start again from another version", retryable=True)
