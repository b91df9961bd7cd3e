"""Protection of versions whose files a later version reuses: restored versions, and bases of detached ones."""

from __future__ import annotations

from lance_dataset.errors import CommitConflictError, DatasetNotFoundError, VersionNotFoundError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import is_detached
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.versions import find_latest, locate_version

__all__ = ["check_source_kept"]


def check_source_kept(store: ObjectStore, root: str, source: int, made: Manifest) -> None:
    """Check that no cleanup removed an old version while a new version was made from its files.

    A cleanup first removes manifests, then looks for new versions, then removes files. While the old manifest exists,
    the cleanup will see the new version. If the old manifest is gone, the cleanup may have missed the new version,
    which is then withdrawn.

    Parameters
    ----------
    store, root
        The table.
    source
        The old version.
    made
        The new version, which is already published.

    Raises
    ------
    CommitConflictError
        The old version is gone. If `retryable` is true, the new version was withdrawn. Otherwise others have already
        built on it.
    """
    try:
        locate_version(store, root, source)
        return
    except (VersionNotFoundError, DatasetNotFoundError):
        pass
    place = f"version {source} of {store.uri(root)} was removed by a cleanup at the same time"
    if not is_detached(made.version):
        latest = find_latest(store, root)
        if latest is None or latest.version != made.version:
            raise CommitConflictError(
                f"{place} as version {made.version} was made from its files, and others have already built on that: "
                "check that all rows can be read, and restore another version if not",
                retryable=False,
            )
    commit_protocol(store).forget(store, root, [made.version])
    store.delete(made.path)
    raise CommitConflictError(f"{place}, so nothing was committed; start again from another version", retryable=True)
