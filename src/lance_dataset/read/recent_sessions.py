"""Sessions of datasets that are opened again soon after their last handle was closed.

Programs often open a dataset anew for each look-up of a row. Then most of the time would go into reading again what the
last handle knew: the manifest, metadata of files, indices. So what the session of a local dataset has cached is kept
for a moment after it ended if it has used indices, and the next session of the same location gets it, unless a file
that was open has changed.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import weakref
from collections.abc import Hashable, Mapping
from typing import Final

from lance_dataset.io.local import LocalStore
from lance_dataset.io.resolve import check_options
from lance_dataset.io.uris import has_scheme
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.session import Session, SessionContent

__all__ = ["forget_recent_sessions", "session_for"]

#: Sessions whose content is kept, seconds for which it is, and the maximum estimated bytes of it.
_MOST: Final = 4
_SECONDS: Final = 2.0
_MOST_BYTES: Final = 128 << 20

#: Content of sessions that ended, with the time. Changed by single steps only, because sessions may end at any point of
#: a program, so a lock could be held already.
_ended: dict[Hashable, tuple[float, SessionContent]] = {}


class _EphemeralSession(Session):
    """Session of one location, whose content is kept when it ends."""

    def __init__(self, location: Hashable, content: SessionContent | None) -> None:
        super().__init__()
        self._location = location
        if content is not None:
            self._take_over(content)
        self._intact = weakref.ref(self._content.metadata)

    def __reduce__(self) -> tuple[type[Session], tuple[()]]:
        return Session, ()

    def __del__(self) -> None:
        # If the collector of cycles ends the session, it has cleared the weak references between the objects in it.
        if not sys.is_finalizing() and self._intact() is not None:
            _keep(self._location, self._content)


def session_for(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> Session:
    """Return a new session for a dataset, which knows what the last one of the same location knew a moment ago."""
    text = os.fspath(uri)
    if not isinstance(text, str) or has_scheme(text) or os.name == "nt":  # Windows does not delete files that are open
        return Session()
    check_options(storage_options)
    location = os.path.abspath(text), frozenset((storage_options or {}).items()), os.environ.get("LANCE_MMAP")
    _forget_old()
    ended = _ended.pop(location, None)
    content = None if ended is None or not _is_usable(ended[1]) else ended[1]
    return _EphemeralSession(location, content)


def forget_recent_sessions() -> None:
    """Close what is kept of sessions that ended."""
    _ended.clear()


def _keep(location: Hashable, content: SessionContent) -> None:
    size = content.index_bytes
    most = share_of_memory(_MOST_BYTES, MemoryUse.CACHE)
    if size is None or size + content.metadata.statistics().bytes > most or content.has_base_paths:
        return
    if any(store.statistics.is_networked for store in content.stores.values()):
        return  # there, files that are deleted while they are open get in the way
    if _on_collection not in gc.callbacks:
        gc.callbacks.append(_on_collection)
    _ended[location] = time.monotonic(), content
    while len(_ended) > _MOST:
        oldest = next(iter(list(_ended)), None)
        _ended.pop(oldest, None)


def _is_usable(content: SessionContent) -> bool:
    return all(isinstance(store, LocalStore) and store.is_unchanged() for store in content.stores.values())


def _forget_old() -> None:
    if not _ended:
        return
    limit = time.monotonic() - _SECONDS
    for location, (moment, _) in list(_ended.items()):
        if moment < limit:
            _ended.pop(location, None)


def _on_collection(phase: str, info: Mapping[str, int]) -> None:
    """Forget what is too old, also if the program opens no other dataset."""
    if phase == "stop":
        _forget_old()
