"""Target of a write, given as a path, a URI or a handle."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lance_dataset.io.guarded import CommitLock
from lance_dataset.read.location import TableLocation
from lance_dataset.read.session import Session
from lance_dataset.read.shown import Shown

if TYPE_CHECKING:
    from lance_dataset.changes.write.target import WriteTarget

__all__ = ["find_target"]


def find_target(
    uri: str | os.PathLike[str] | Shown,
    storage_options: Mapping[str, str] | None,
    session: Session | None = None,
    commit_lock: CommitLock | None = None,
    *,
    as_shown: bool = False,
) -> WriteTarget:
    """Find the table at a location.

    Parameters
    ----------
    uri
        Path, URI, or handle.
    storage_options, session
        Options of the store, and the session, for a path or URI.
    commit_lock
        Lock that commits hold.
    as_shown
        True to write on top of the snapshot of the handle instead of the newest version.

    Raises
    ------
    TypeError
        `uri` is neither a location nor a handle.
    """
    from lance_dataset.changes.write.target import WriteTarget

    if isinstance(uri, Shown):
        return WriteTarget.of(uri.snapshot, storage_options, commit_lock, as_shown=as_shown)
    if not isinstance(uri, str | os.PathLike):
        raise TypeError(f"a dataset must be a path, a URI or a LanceDataset, not {type(uri).__name__}")
    return WriteTarget.at(TableLocation.resolve(uri, storage_options, session, commit_lock=commit_lock))
